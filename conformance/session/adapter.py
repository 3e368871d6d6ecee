"""Loads the implementation that `--adapter` names."""

from __future__ import annotations

import os

import pytest

from ..implementation import loading
from ..implementation.implementation import Implementation

LONGEST_LIMIT = 86400.0
"""The longest time limit of a case, in seconds."""


def load(config: pytest.Config) -> Implementation:
    """Import the adapter and find out what it supports; its output is dropped.

    Raises:
        pytest.UsageError: one line, if it cannot be used.
    """
    name, limit = config.getoption("--adapter"), config.getoption("--bpe-time-limit")
    if not name:
        raise pytest.UsageError(
            "name what to test: pytest conformance --adapter mypkg.mymodule:Tokenizer "
            "(or --adapter reference, to see a passing run)"
        )
    if not 0 < limit <= LONGEST_LIMIT:
        raise pytest.UsageError(f"--bpe-time-limit {limit:g}: must be above 0 seconds and at most a day")
    stderr = os.dup(2)  # while pytest captures, 2 is a file
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.resume_global_capture()
    try:
        trainer, isolate = config.getoption("--bpe-trainer"), config.getoption("--bpe-isolate")
        return loading.load(name, trainer, isolate, limit, stderr)
    except loading.LoadError as error:
        raise pytest.UsageError(str(error)) from None
    finally:
        if capture is not None:
            capture.suspend_global_capture(in_=False)
            capture.read_global_capture()
