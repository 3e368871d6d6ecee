"""Adapters: what `--adapter` can name, adapters for packages, and the JSON-lines protocol of `cmd:` programs."""

from __future__ import annotations

from bpe_conformance.fixtures.answers import MalformedAnswer

from .bridge.client import RemoteTokenizer
from .bridge.wire import CAPABILITIES, TESTABLE
from .errors import AdapterError, AdapterUnavailable, CrashError, HangError, ProtocolError, RemoteError
from .loading import BUILT_IN, resolve
from .shapes.functions import with_trainer
