"""The Unicode tables of the spec are those of Python 3.8 and of the installed engines."""

from __future__ import annotations

from pathlib import Path

import pytest
import unicode_tables

from bpe_conformance.fixtures import characters

PYTHON38 = Path.home() / ".pyenv/versions/3.8.18/bin/python"


@pytest.mark.skipif(not PYTHON38.exists(), reason="needs a Python 3.8, whose character data is that of Unicode 12.1")
def test_the_table_of_unicode_12_is_what_python_3_8_gives() -> None:
    assert characters.UNICODE_12.read_text("utf-8") == unicode_tables.unicode_12_table(str(PYTHON38))


@pytest.mark.release
def test_the_table_of_engine_differences_is_complete() -> None:
    pytest.importorskip("tiktoken")
    pytest.importorskip("tokenizers")
    known = characters.engine_differences()
    measured = unicode_tables.measured_differences()
    missing = [(name, hex(code)) for name, codes in measured.items() for code in codes if chr(code) not in known]
    assert missing == []
    assert set(known) == {"\u0295"}
