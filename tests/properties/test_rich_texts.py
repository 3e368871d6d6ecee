"""Long texts in which everything occurs: what is wrong for them in one way, by one pattern or in one method is told."""

from __future__ import annotations

from typing import Any

import pytest
import regex

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.fixtures.spec import load_spec
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.properties.basic import bind
from bpe_conformance.properties.engine import Law, check
from bpe_conformance.properties.rich_texts import PART, SPECIALS, everything
from bpe_conformance.reference import Tokenizer, textbook

LONG = 65_536


@pytest.fixture(scope="module")
def laws() -> dict[str, Law]:
    return {law.id: law for law in bind(load_spec(check_schema=False).clauses)}


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("pattern", [name for name in PATTERNS if name != "none"])
def test_the_part_has_the_same_ids_wherever_it_stands(pattern: str, special: bool) -> None:
    model = everything(Implementation("x", Tokenizer), pattern, special)
    right = textbook.Tokenizer(model.vocab, model.merges, model.special_tokens, PATTERNS[pattern])
    assert right.encode(PART * 3) == right.encode(PART) * 3
    assert not special or {token.encode() for token in SPECIALS} <= {model.vocab[one] for one in right.encode(PART)}


class LongTexts(Tokenizer):
    """Has a way of its own for texts from 65,536 characters on."""

    def encode(self, text: str, **choice: Any) -> list[int]:
        return self.long(text) if len(text) >= LONG else super().encode(text, **choice)

    def plainly(self, text: str) -> list[int]:
        return super().encode(text)

    def long(self, text: str) -> list[int]:
        raise NotImplementedError


class SixteenBitIds(LongTexts):
    def long(self, text: str) -> list[int]:
        return [index & 0xFFFF for index in self.plainly(text)]


class SpecialTokensInTheirOrder(LongTexts):
    def long(self, text: str) -> list[int]:
        ids = {token.decode("utf-8", "replace"): index for index, token in self.vocab.items()}
        found = "|".join(map(regex.escape, self.special_tokens)) or r"(?!)"
        parts = regex.split(f"({found})", text)
        plain = Tokenizer(self.vocab, self.merges, pattern=self.pattern)
        return [
            one
            for place, part in enumerate(parts)
            for one in ([ids[part]] if place % 2 else plain.encode(part) if part else [])
        ]


class BytesAsTheirValues(LongTexts):
    def long(self, text: str) -> list[int]:
        values = {index: token[0] for index, token in self.vocab.items() if len(token) == 1}
        return [values.get(index, index) for index in self.plainly(text)]


class OneFastPattern(LongTexts):
    def long(self, text: str) -> list[int]:
        return Tokenizer(self.vocab, self.merges, self.special_tokens).encode(text)


class NulsStripped(LongTexts):
    def long(self, text: str) -> list[int]:
        return self.plainly(regex.sub("\0+(?= )", "", text))


class BlocksOfLines(LongTexts):
    """Cuts behind a line end which no other follows, which a run of white space may go on behind."""

    def long(self, text: str) -> list[int]:
        ids: list[int] = []
        while text:
            found = regex.compile(r"\n(?!\n)").search(text, LONG)
            end = found.end() if found else len(text)
            ids += self.plainly(text[:end])
            text = text[end:]
        return ids


class StreamsWithoutPattern(Tokenizer):
    def encode_iterable(self, chunks: Any, **choice: Any) -> Any:
        text = "".join(chunks)
        pattern = self.pattern if len(text) < 4_096 else None
        return iter(Tokenizer(self.vocab, self.merges, self.special_tokens, pattern=pattern).encode(text))


class StreamsCutAtSpaces(Tokenizer):
    """Gives out what it holds up to the last single space, though a special token with spaces may have begun."""

    def encode_iterable(self, chunks: Any, **choice: Any) -> Any:
        held = ""
        for chunk in chunks:
            held += chunk
            if len(held) >= 2_048 and (found := regex.findall(r"(?<=\S) (?=\S)", held)):
                at = max(one.start() for one in regex.finditer(r"(?<=\S) (?=\S)", held)) if found else 0
                yield from self.encode(held[:at])
                held = held[at:]
        yield from self.encode(held)


class LargeBatchesWithoutPattern(Tokenizer):
    def encode_batch(self, texts: Any, **choice: Any) -> Any:
        pattern = self.pattern if len(texts) < 32 else None
        return Tokenizer(self.vocab, self.merges, self.special_tokens, pattern=pattern).encode_batch(texts)


class DecodesByPlace(Tokenizer):
    def decode(self, ids: Any) -> str:
        tokens = list(self.vocab.values())
        if len(ids) < 1_024 or max(ids) >= len(tokens):
            return super().decode(ids)
        return b"".join(tokens[index] for index in ids).decode("utf-8", "replace")


class DecodesNoSpecials(Tokenizer):
    def decode_bytes(self, ids: Any) -> bytes:
        special = {token.encode() for token in self.special_tokens if len(ids) > 1_024}
        return b"".join(token for token in map(self.vocab.__getitem__, ids) if token not in special)

    def decode(self, ids: Any) -> str:
        return super().decode_bytes(ids).decode("utf-8", "replace")


class TrainsOnLines(Tokenizer):
    """Opens long texts as a text file, which turns each line end into LF."""

    @classmethod
    def train(cls, text: Any, *given: Any, **options: Any) -> Any:
        text = text if len(text) < LONG else text.replace("\r\n", "\n").replace("\r", "\n")
        return super().train(text, *given, **options)


class TrainsThroughSpecials(Tokenizer):
    """With a pattern, special tokens get their ids, and the text is not cut at them."""

    @classmethod
    def train(cls, text: Any, size: Any, special: Any = (), *, pattern: Any = None, **options: Any) -> Any:
        if pattern is None or not special:
            return super().train(text, size, special, pattern=pattern, **options)
        trained = super().train(text, size - len(special), pattern=pattern, **options)
        vocab = dict(enumerate([*(bytes([byte]) for byte in range(256)), *(token.encode() for token in special)]))
        vocab |= {len(vocab) + rank: left + right for rank, (left, right) in enumerate(trained.merges)}
        return cls(vocab, trained.merges, special, pattern=pattern)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *(("law-long-ways", one) for one in LongTexts.__subclasses__()),
        ("law-long-ways", StreamsWithoutPattern),
        ("law-long-ways", StreamsCutAtSpaces),
        ("law-long-ways", LargeBatchesWithoutPattern),
        ("law-long-ways", DecodesByPlace),
        ("law-long-ways", DecodesNoSpecials),
        ("law-train-large", TrainsOnLines),
        ("law-train-large-pattern", TrainsThroughSpecials),
    ],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_what_is_wrong_for_long_texts_in_one_way_breaks_the_law(laws: dict[str, Law], name: str, target: type) -> None:
    found = check(laws[name], Implementation("x", target))
    assert found is not None
    assert "raised" not in found.difference.got


def test_the_reference_keeps_the_law(laws: dict[str, Law]) -> None:
    implementation = Implementation("x", Tokenizer)
    assert check(laws["law-long-ways"], implementation) is None
    assert implementation.notes == []
