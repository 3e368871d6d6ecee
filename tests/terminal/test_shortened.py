"""A list that is too long for the screen says how many of its items it leaves out."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any

import pytest

from bpe_conformance.fixtures import Model
from bpe_conformance.fixtures.pipeline import AddedToken, Pipeline
from bpe_conformance.operations import Encode, Question
from bpe_conformance.packs import inspect
from bpe_conformance.packs.reach import Reach
from bpe_conformance.report import grid, markdown
from bpe_conformance.session.run import Run
from bpe_conformance.spec_tools import replay
from bpe_conformance.terminal import show, wording

BYTES = {byte: bytes([byte]) for byte in range(256)}


def specials(names: Sequence[str]) -> str:
    return dict(wording.setting(Question(Encode("x"), Model(BYTES, (), (*names,))), (), 9_999))["special"]


def lacking(names: Sequence[str]) -> str:
    vocab = {byte: token for byte, token in BYTES.items() if byte < 256 - len(names)}
    return dict(wording.setting(Question(Encode("x"), Model(vocab, ())), (), 9_999))["lacks"]


def added(names: Sequence[str]) -> str:
    return " ".join(show.pipeline(Pipeline(added_tokens=tuple(map(AddedToken, names)))))


def inspected(names: Sequence[str]) -> str:
    vocab = BYTES | {256 + at: name.encode() for at, name in enumerate(names)}
    source: Any = SimpleNamespace(model=Model(vocab, (), (*names,), name="m"), sources={})
    return dict(inspect._description(source, Reach(source.model)))["added"].partition(":")[2]


def selected(names: Sequence[str]) -> str:
    command = SimpleNamespace(selecting=[word for name in names for word in ("--bpe-case", name)])
    setup = SimpleNamespace(command=command, fuzzing=None, cases=(), properties=(), corpora=())
    return Run._part(SimpleNamespace(setup=setup, outcomes=()))  # type: ignore[arg-type]


def failures(names: Sequence[str]) -> str:
    results = [{"id": "x", "failure": {"lines": [name]}} for name in names]
    return "\n".join(markdown._failures(results, "failures"))


def causes(names: Sequence[str]) -> str:
    found: Any = SimpleNamespace(problem="", causes=names, tested=9, passed=8, smallest=[])
    return html.unescape(next(iter(grid._details(found))))


def others(names: Sequence[str]) -> str:
    word = [token for name in names for token in (b"a", name.encode())]
    return replay._others(word, lambda pair: 7 if pair[0] == b"a" else None, 1)


PAIRS: Callable[[Sequence[str]], list[Any]] = lambda names: [(b"a", name.encode()) for name in names]  # noqa: E731


@pytest.mark.parametrize(
    "shortened",
    [
        *(specials, lacking, added, inspected, selected, failures, causes, others),
        lambda names: show.merges(PAIRS(names)),
        lambda names: " ".join(show.ranked(PAIRS(names))),
        lambda names: show.numbers([*range(900, 900 + len(names))]),
        lambda names, around: show.ids([*range(900, 900 + len(names))], {}, around),
        lambda names: replay.Cut().joined(names, 12),
        lambda names, around: replay._row([name.encode() for name in names], min(around, len(names) - 2)),
    ],
)
def test_what_is_left_out_is_counted(shortened: Callable[..., str]) -> None:
    for count, around in product(range(2, 40), (0, 7, 99)[: 2 * shortened.__code__.co_argcount - 1]):
        names = [f"<{number}>" for number in range(count)]
        text = shortened(*[names, around][: shortened.__code__.co_argcount])
        shown = re.findall(r"<[0-9a-f]{1,2}>|\b9\d\d\b", text)
        left_out = [int(number) for number in re.findall(r"(\d+) (?:more|before)\b", text)]
        assert len({*shown}) == len(shown), text
        assert len(shown) + sum(left_out) == count, text
        assert 0 not in left_out, text
        if shortened.__code__.co_argcount == 2:
            near = min(around, count - 1)
            assert {f"<{near}>", str(900 + near)} & {*shown}, text


def test_merges_that_are_left_out_between_ranks_are_marked() -> None:
    for needed in ((), *product(range(10, 25), range(16, 40, 5))):
        rows = show.ranked([(b"a", b"b")] * 40, needed)
        ranks = [None if row == "..." else int(row.split(":")[0]) for row in rows if "more" not in row]
        shown = [rank for rank in ranks if rank is not None]
        assert [before for before, rank in pairwise(ranks) if rank is None] == [
            before for before, rank in pairwise(shown) if rank > before + 1
        ]
