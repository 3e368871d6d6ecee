"""`python -m bpe_conformance.adapters.bridge SPEC` serves a Python adapter over the JSON-lines protocol."""

from __future__ import annotations

from .server import main

main()
