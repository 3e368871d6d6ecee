"""`bpe-conformance known-bugs` says which known bugs a case catches."""

from __future__ import annotations

from typing import Any

import pytest

from bpe_conformance.known_bugs import command, matrix


def test_the_bugs_that_a_case_catches_are_named(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    published = matrix.read()
    monkeypatch.setattr(command.mutation_score, "measured_again", lambda *_: published)
    monkeypatch.setattr(command, "write_text", lambda *_: None)
    parser = command.argparse.ArgumentParser()
    command.arguments(parser)
    assert command.run(parser.parse_args(["--measure", "split-cl100k-contraction-long-s", "new"])) == 0
    *_, known, new = capsys.readouterr().out.splitlines()
    assert known.startswith("split-cl100k-contraction-long-s catches ")
    assert "cl100k-long-s-not-folded, " in known
    assert new == "new catches none"
