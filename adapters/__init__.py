"""Bridges to tokenizers: what `--adapter` may name, third-party adapters, and the `cmd:` protocol."""

from __future__ import annotations

from .errors import (
    AdapterError,
    AdapterUnavailable,
    BridgeError,
    CrashError,
    HangError,
    OutOfMemoryError,
    ProtocolError,
    RemoteError,
)
from .importing import load
from .loading import BUILT_IN, resolve
from .shapes.functions import with_trainer

__all__ = [
    "BUILT_IN",
    "AdapterError",
    "AdapterUnavailable",
    "BridgeError",
    "CrashError",
    "HangError",
    "OutOfMemoryError",
    "ProtocolError",
    "RemoteError",
    "load",
    "resolve",
    "with_trainer",
]
