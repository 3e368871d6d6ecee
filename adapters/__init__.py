"""Adapters: what `--adapter` may name, adapters of packages, and the JSON-lines protocol of `cmd:` programs."""

from __future__ import annotations

from bpe_conformance.fixtures.answers import MalformedAnswer

from .bridge.remote import RemoteTokenizer
from .errors import (
    AdapterError,
    AdapterUnavailable,
    BridgeError,
    CrashError,
    HangError,
    OutOfMemoryError,
    ProtocolError,
    RemoteError,
    RemoteFailure,
)
from .loading import BUILT_IN, load, resolve
from .shapes.functions import with_trainer

__all__ = [
    "BUILT_IN",
    "AdapterError",
    "AdapterUnavailable",
    "BridgeError",
    "CrashError",
    "HangError",
    "MalformedAnswer",
    "OutOfMemoryError",
    "ProtocolError",
    "RemoteError",
    "RemoteFailure",
    "RemoteTokenizer",
    "load",
    "resolve",
    "with_trainer",
]
