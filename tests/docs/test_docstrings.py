"""The examples in docstrings give the results that they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest
from helpers.console_blocks import ROOT

from bpe_conformance.adapters import AdapterUnavailable

FILES = [
    file
    for folder in ("fixtures", "reference", "adapters", "conformance")
    for file in sorted((ROOT / folder).rglob("*.py"))
    if ">>>" in file.read_text("utf-8")
]


def _module(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "conformance" else parts
    return ".".join(("bpe_conformance", *parts)).removesuffix(".__init__")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_examples_give_the_shown_results(file: Path) -> None:
    try:
        module = importlib.import_module(_module(file))
    except AdapterUnavailable as error:
        pytest.skip(str(error))
    failed, attempted = doctest.testmod(module)
    assert attempted
    assert not failed
