"""Properties of pipelines: any steps, added tokens, normal forms and lookup, on any text."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

from hypothesis import strategies as st

from bpe_conformance.fixtures import Model
from bpe_conformance.fixtures import pipeline as values
from bpe_conformance.fixtures.characters import NORMAL_FORMS
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Digits, Punctuation, Split, Step

from ..implementation.implementation import Implementation
from ..operations import Encode, Question, pieces
from . import strategies
from .asking import equals_oracle
from .engine import Drawn, Verdicts
from .strategies import Encodings, Pieces, some_bytes, table

ASCII: Pieces = ("a", "b", " ", "1", "-", "  ", "\n", "ab", ".", "A", "<s>", "12", "_", "bc", "c", "x", "'s", "--")
OTHERS: Pieces = (*"²ﬁ\u0323\u00a0日Ⅷ€🦊éạ", "e\u0301", "\u1100\u1161", "a\u0323\u0302")
CONTENTS = ("<s>", "ab", "abc", "bc", "a b", "ạ", "a\u0323", "<s", "s>", "ﬁ", "12", "-a", "  ", "xx")
EXPRESSIONS = ("-", r"\s+(?!\S)|\s+", r"\p{N}{1,3}", r" ?\p{L}+", "(?=b)", r"[a-z]+|[^a-z\s]+", "(?<=a)b", "|a")


def _steps(data: bytes) -> tuple[Step, ...]:
    """Return up to three steps and ByteLevel among them."""
    steps: list[Step] = []
    for byte in filter(None, data[:3]):
        behavior, kind = values.BEHAVIORS[byte % 5], byte // 5 % 16
        several: dict[int, Step] = {0: Digits(), 1: Digits(individual=True), 2: Punctuation(), 3: Punctuation(behavior)}
        steps.append(several.get(kind) or Split(EXPRESSIONS[kind % len(EXPRESSIONS)], behavior, byte % 3 == 0))
    choice = data[3]
    steps.insert(len(steps) if choice < 192 else 0, ByteLevel(prefix_space=choice % 4 == 1, split=choice % 8 < 5))
    return tuple(steps)


def _added(data: bytes) -> tuple[AddedToken, ...]:
    """Return up to three added tokens; white space at the end of a content excludes the flags that take white space."""
    found: dict[str, AddedToken] = {}
    for byte, flags in zip(data[::2], data[1::2], strict=True):
        content = CONTENTS[byte % len(CONTENTS)]
        strips = content.strip() == content
        token = AddedToken(content, flags % 2 == 1, strips and flags & 2 > 0, strips and flags & 4 > 0, flags & 24 == 8)
        found.setdefault(unicodedata.normalize("NFKC", content), token)  # no two of one normal form
    return tuple(found.values())


def _pipelines(implementation: Implementation) -> Encodings:
    def build(data: bytes, chosen: bytes, number: int) -> Question[Encode]:
        forms = tuple(NORMAL_FORMS[one % 4] for one in chosen[:2] if one % 8 > 3)
        added = _added(chosen[6 : 6 + 2 * (chosen[2] % 4)])
        contents = tuple(token.content for token in added)
        parts = strategies.pieces((*ASCII, *OTHERS, *contents * 5), data)
        is_clear = {*forms} <= {"NFC", "NFD"} and not any(token.single_word for token in added)
        lookup = "whole" if chosen[2] >= 160 and is_clear else "pair"  # or it may find an added token: PIPELINE-WHOLE-1
        text, seen = "".join(parts), [*parts]
        for form in forms:
            seen = [unicodedata.normalize(form, part) for part in [*seen, text]]
        pipeline = values.Pipeline(forms, added, _steps(chosen[2:6]), lookup)
        model = replace(table(seen, number, implementation, contents), pipeline=pipeline)
        return Question(Encode(text), _with_entries(model, text) if lookup == "whole" or number % 4 == 3 else model)

    return st.builds(build, some_bytes(12), st.binary(min_size=12, max_size=12), st.integers(0, (1 << 24) - 1))


def _with_entries(model: Model, text: str) -> Model:
    """Return a model with further entries: every second pre-token of the text that has none."""
    known = set(model.vocab.values())
    words = dict.fromkeys(piece for piece, is_added in pieces(model, text) if not is_added and piece not in known)
    first = max(model.vocab) + 1
    return replace(model, vocab={**model.vocab, **dict(enumerate([*words][::2], first))})


@Drawn("law-pipeline", "PIPELINE-EQUAL-1", ("from_tokenizer_json", "encode"), _pipelines, 100)
def equal(implementation: Implementation, question: Question[Encode]) -> Verdicts:
    """Any pipeline gives the ids of the steps, in their order."""
    yield equals_oracle(implementation, question, "PIPELINE-EQUAL-1")


PROPERTIES = (equal,)
