"""A program whose key loses something fails, and so does one that changes characters or uses them as marks."""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Callable, Hashable, Iterator
from itertools import accumulate, pairwise
from typing import Any

import pytest
from helpers.wrong_tokenizers import Whole

from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.properties import complete
from bpe_conformance.properties.engine import Effort, Found
from bpe_conformance.reference import textbook

PROPERTIES = {one.id: one for one in complete.PROPERTIES}


def run(property_id: str, target: Any) -> Found | None:
    return PROPERTIES[property_id].run(Implementation("x", target), Effort())


def caching(method: str, key: Callable[[Any], Hashable], everywhere: bool = False) -> type[Whole]:
    """Return a class that keeps the answers of a method by a key; `everywhere`: one cache for all tokenizers."""
    shared: dict[Hashable, Any] = {}

    class Caching(Whole):
        pass

    def cached(self: Any, argument: Any) -> Any:
        argument = list(argument) if not isinstance(argument, str) else argument
        cache = shared if everywhere else self.__dict__.setdefault("_cache", {})
        if key(argument) not in cache:
            answer = getattr(Whole, method)(self, argument)
            cache[key(argument)] = list(answer) if isinstance(answer, Iterator) else answer
        return cache[key(argument)]

    setattr(Caching, method, cached)
    if method == "decode_bytes":  # `decode` calls it, and is correct here
        correct = {"decode": lambda self, ids: Whole.decode_bytes(self, ids).decode("utf-8", "replace")}
        return type("CachingBytes", (Caching,), correct)
    return Caching


def of_numbers(key: Callable[[list[int]], Hashable]) -> Callable[[Any], Hashable]:
    return lambda ids: (len(ids), key(ids))


TEXT_KEYS: dict[str, Callable[[Any], Hashable]] = {
    "lower": str.lower,
    "strip": str.strip,
    "length": len,
    "prefix": lambda text: text[:64],
    "suffix": lambda text: text[-64:],
    "ends": lambda text: (len(text), text[:20], text[-20:]),
    "ends-of-long": lambda text: (len(text), text[:100], text[-100:]) if len(text) > 200 else text,
    "beginning-of-long": lambda text: (len(text), text[:4_096] if len(text) > 4_096 else text),
    "sorted": lambda text: "".join(sorted(text)),
    "latin-1": lambda text: text.encode("latin-1", "replace"),
    "low-byte": lambda text: bytes(ord(char) & 0xFF for char in text),
    "low-16-bits": lambda text: tuple(ord(char) & 0xFFFF for char in text),
    "nfc": lambda text: unicodedata.normalize("NFC", text),
    "nfkc": lambda text: unicodedata.normalize("NFKC", text),
    "number": lambda text: float(text) if text.replace(".", "").isascii() and text.replace(".", "").isdigit() else text,
    "words": lambda text: frozenset(text.split()),
    "squeezed": lambda text: " ".join(text.split()),
    "address": id,
}
ID_KEYS: dict[str, Callable[[Any], Hashable]] = {
    "low-byte": lambda ids: bytes(index & 0xFF for index in ids),
    "low-16-bits": lambda ids: tuple(index & 0xFFFF for index in ids),
    "joined": lambda ids: "".join(map(str, ids)),
    "length": len,
    "sum": of_numbers(sum),
    "sorted": lambda ids: tuple(sorted(ids)),
    "set": frozenset,
    "prefix": lambda ids: tuple(ids[:32]),
    "suffix": lambda ids: tuple(ids[-32:]),
    "long-prefix": lambda ids: tuple(ids[:64]),
    "long-suffix": lambda ids: tuple(ids[-64:]),
    "ends": lambda ids: (len(ids), tuple(ids[:1]), tuple(ids[-1:])),
    "ends-of-long": lambda ids: (len(ids), tuple(ids[:20]), tuple(ids[-20:])),
    "as-a-number": lambda ids: sum(index << 8 * place for place, index in enumerate(ids)),
}
LIST_KEYS: dict[str, Callable[[Any], Hashable]] = {
    "number": len,
    "first": lambda texts: texts[:1] and texts[0],
    "last": lambda texts: texts[-1:] and texts[-1],
    "sorted": lambda texts: tuple(sorted(texts)),
    "set": frozenset,
    "lower": lambda texts: tuple(text.lower() for text in texts),
    "length": lambda texts: sum(map(len, texts)),
}


@pytest.mark.parametrize(
    ("property_id", "method", "key"),
    [
        *(pytest.param("law-cached-texts", "encode", key, id=f"encode-{name}") for name, key in TEXT_KEYS.items()),
        *(pytest.param("law-cached-ids", "decode", key, id=f"decode-{name}") for name, key in ID_KEYS.items()),
        *(pytest.param("law-cached-ids", "decode_bytes", key, id=f"bytes-{name}") for name, key in ID_KEYS.items()),
        *(
            pytest.param("law-cached-offsets", "encode_with_offsets", key, id=f"offsets-{name}")
            for name, key in TEXT_KEYS.items()
            if name not in ("beginning-of-long", "address")  # such texts are those of `encode` alone
        ),
        *(
            pytest.param("law-cached-detokenizing", "decode_iterable", key, id=f"detok-{name}")
            for name, key in ID_KEYS.items()
        ),
        *(
            pytest.param("law-cached-streams", "encode_iterable", key, id=f"s-{name}")
            for name, key in LIST_KEYS.items()
        ),
        *(
            pytest.param("law-cached-batches", "encode_batch", key, id=f"batch-{name}")
            for name, key in LIST_KEYS.items()
        ),
        pytest.param("law-cached-batches", "encode_batch", "".join, id="batch-joined"),
        pytest.param("law-cached-batches", "encode_batch", "\n".join, id="batch-joined-lines"),
        pytest.param("law-cached-batches", "encode_batch", "\0".join, id="batch-joined-nul"),
    ],
)
@pytest.mark.parametrize("everywhere", [False, True], ids=["own-cache", "shared-cache"])
def test_a_cache_whose_key_loses_something_is_found(
    property_id: str, method: str, key: Callable[[Any], Hashable], everywhere: bool
) -> None:
    found = run(property_id, caching(method, key, everywhere))
    assert found is not None
    if not everywhere:  # the probes of capabilities, too, fill a cache of all tokenizers
        assert found.mismatch.depends_on is None
        after = "after a text that no longer exists" if key is id else f"after {method}("
        assert found.mismatch.asked.context.startswith(after)


OF_LISTS = {"encode_iterable": LIST_KEYS["length"], "encode_batch": LIST_KEYS["lower"]}
METHODS = ("encode", "encode_with_offsets", "decode", "decode_bytes", "decode_iterable", *OF_LISTS)


@pytest.mark.parametrize("method", METHODS)
def test_a_cache_that_loses_something_only_with_a_pipeline_is_found(method: str) -> None:
    key = OF_LISTS.get(method, lambda argument: (len(argument), argument[:20], argument[-20:]))
    caches = caching(method, lambda argument: key(argument) if isinstance(argument, str) else repr(key(argument)))

    def asked(self: Any, argument: Any) -> Any:
        return getattr(Whole if self.pipeline is None else caches, method)(self, argument)

    found = run("law-cached-pipelines", type("OnlyWithPipelines", (caches,), {method: asked}))
    assert found is not None
    assert found.mismatch.depends_on is None


@pytest.mark.parametrize("method", METHODS)
def test_a_cache_that_loses_something_without_a_pipeline_too_is_not_the_pipelines_fault(method: str) -> None:
    key = OF_LISTS.get(method, len)
    assert run("law-cached-pipelines", caching(method, key)) is None


@pytest.mark.parametrize("method", METHODS)
def test_a_cache_by_the_address_of_a_tokenizer_is_found(method: str) -> None:
    cache: dict[Hashable, Any] = {}

    class ByAddress(Whole):
        pass

    def cached(self: Any, argument: Any) -> Any:
        argument = argument if isinstance(argument, str) else tuple(argument)
        if (id(self), argument) not in cache:
            answer = getattr(Whole, method)(self, argument)
            cache[id(self), argument] = [*answer] if isinstance(answer, Iterator) else answer
        return cache[id(self), argument]

    setattr(ByAddress, method, cached)
    found = run("law-cached-tables", ByAddress)
    assert found is not None
    assert found.mismatch.depends_on is None
    assert found.mismatch.asked.context == "after a tokenizer that no longer exists"


@pytest.mark.parametrize("key", [str.lower, len], ids=["lower", "length"])
def test_a_cache_of_all_tokenizers_is_at_fault_itself(key: Callable[[Any], Hashable]) -> None:
    """A new tokenizer gives the same incorrect ids, but they are those of another text."""
    found = run("law-cached-texts", caching("encode", key, everywhere=True))
    assert found is not None
    assert found.mismatch.depends_on is None


@pytest.mark.parametrize(
    ("method", "calling"),
    [
        ("encode", {"encode", "encode_iterable", "encode_batch"}),
        ("decode", {"decode", "decode_iterable"}),
        ("encode_batch", {"encode_batch"}),
    ],
)
def test_a_cache_whose_key_is_complete_passes(method: str, calling: set[str]) -> None:
    target = caching(method, lambda argument: argument if isinstance(argument, str) else tuple(argument))
    cached = [one for one in complete.PROPERTIES if one.id.startswith("law-cached")]
    tested = [one for one in cached if calling.intersection(one.needs)]
    assert tested
    assert all(one.run(Implementation("x", target), Effort()) is None for one in tested)


class TakesTheEndOfItsLastText(Whole):
    """Gives the ids of the last text if that ends with this one: only a longer text before a shorter one shows it."""

    last: tuple[str, list[int]] = "", []

    def encode(self, text: str, **choice: Any) -> list[int]:
        before, ids = self.last
        self.last = text, ids if text and before.endswith(text) else super().encode(text, **choice)
        return self.last[1]


class KeepsTheIdsOfAPrompt(Whole):
    """Encodes only what follows the last text, if the cut is before a space: a special token can be across the cut."""

    last: tuple[str, list[int]] = "", []

    def encode(self, text: str, **choice: Any) -> list[int]:
        before, ids = self.last
        rest = text.removeprefix(before)
        is_begun = before and rest != text and rest[:1] == " " and before[-1] != " "
        self.last = text, [*ids, *super().encode(rest)] if is_begun else super().encode(text, **choice)
        return self.last[1]


class KeepsShortWordsOnly(Whole):
    """A cache with room for 64 words: it keeps the key of a long word with the tokens of the word before."""

    encode_pre_token = textbook.Tokenizer.encode_pre_token

    def merge(self, word: textbook.Word) -> textbook.Word:
        kept = vars(self).setdefault("kept", {})
        slot = zlib.crc32(b"".join(word)) % 64
        key, tokens = kept.get(slot, (None, None))
        if key == word:
            return tokens  # type: ignore[no-any-return]
        merged = super().merge(word)
        kept[slot] = word, merged if len(merged) <= 16 else tokens or merged
        return merged


@pytest.mark.parametrize("target", [TakesTheEndOfItsLastText, KeepsTheIdsOfAPrompt, KeepsShortWordsOnly])
def test_a_text_that_is_wrong_after_others_is_found(target: type) -> None:
    found = run("law-cached-texts", target)
    assert found is not None
    assert found.mismatch.depends_on is None


@pytest.mark.parametrize(("errors", "context"), [("replace", "after the text '?'"), ("ignore", "after the text ''")])
def test_a_cache_that_confuses_a_lone_surrogate_is_found(errors: str, context: str) -> None:
    found = run("law-cached-surrogates", caching("encode", lambda text: text.encode("utf-8", errors)))
    assert found is not None
    assert found.mismatch.depends_on is None
    assert found.mismatch.asked.context == context


def test_a_special_token_across_the_end_of_an_earlier_text_is_found_in_pipelines() -> None:
    found = run("law-cached-pipelines", KeepsTheIdsOfAPrompt)
    assert found is not None
    assert found.mismatch.depends_on is None


TRAINING_KEYS: dict[str, Callable[..., Hashable]] = {
    "text": lambda text, size, special, pattern: text,
    "text-and-size": lambda text, size, special, pattern: (text, size),
    "size": lambda text, size, special, pattern: (size, tuple(special)),
    "length": lambda text, size, special, pattern: (len(text), size, tuple(special)),
    "lower": lambda text, size, special, pattern: (text.lower(), size, tuple(special)),
    "sorted": lambda text, size, special, pattern: ("".join(sorted(text)), size, tuple(special)),
    "prefix": lambda text, size, special, pattern: (text[:20], size, tuple(special)),
    "suffix": lambda text, size, special, pattern: (text[-20:], size, tuple(special)),
    "ends": lambda text, size, special, pattern: (len(text), text[:100], text[-100:], size, tuple(special), pattern),
    "beginning": lambda text, size, special, pattern: (len(text), text[:1_000], size, tuple(special), pattern),
    "special-tokens-by-spaces": lambda text, size, special, pattern: (text, size, " ".join(special), pattern),
    "special-tokens-joined": lambda text, size, special, pattern: (text, size, "".join(special), pattern),
    "special-tokens-by-case": lambda text, size, special, pattern: (text, size, str(special).lower(), pattern),
    "pattern": lambda text, size, special, pattern: (text, size, tuple(special)),
    "normal-form": lambda text, size, special, pattern: (unicodedata.normalize("NFC", text), size, pattern, *special),
    "hash": lambda text, size, special, pattern: (zlib.crc32(text.encode()), size, pattern, *special),
}


@pytest.mark.parametrize("key", TRAINING_KEYS.values(), ids=TRAINING_KEYS)
def test_a_cache_of_trainings_is_found(key: Callable[..., Hashable]) -> None:
    cache: dict[Hashable, Any] = {}

    class CachesTrainings(Whole):
        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: list[str], pattern: str | None = None) -> Any:
            own = key(text, vocab_size, special_tokens, pattern)
            if own not in cache:
                cache[own] = super().train(text, vocab_size, special_tokens, pattern)
            return cache[own]

    found = run("law-cached-trainings", CachesTrainings)
    assert found is not None
    assert found.mismatch.depends_on is None


def training_on(change: Callable[[str], str]) -> type[Whole]:
    class Changes(Whole):
        @classmethod
        def train(cls, text: str, *arguments: Any, **options: Any) -> Any:
            return super().train(change(text), *arguments, **options)

    return Changes


@pytest.mark.parametrize(
    "change",
    [
        *(
            pytest.param(lambda text, mark=mark: text.replace(mark, " "), id=f"{ord(mark):04x}")
            for mark in complete.MARKS[:12]
        ),
        pytest.param(lambda text: text.replace("</w>", ""), id="end-of-word"),
        pytest.param(str.lower, id="lower"),
        pytest.param(str.casefold, id="casefold"),
        *(
            pytest.param(lambda text, form=form: unicodedata.normalize(form, text), id=form)
            for form in ("NFC", "NFD", "NFKC", "NFKD")
        ),
        *(
            pytest.param(lambda text, code=code: text.replace(chr(code), ""), id=f"control-{code:02x}")
            for code in (*range(5, 9), *range(0x0E, 0x1A), 0x1B, 0x7F)
        ),
        pytest.param(lambda text: text.encode("latin-1", "replace").decode("latin-1"), id="latin-1"),
        pytest.param(lambda text: "".join(c for c in text if ord(c) < 0x10000), id="basic-plane"),
    ],
)
def test_a_trainer_that_changes_characters_is_found(change: Callable[[str], str]) -> None:
    found = run("law-train-characters", training_on(change))
    assert found is not None
    assert found.mismatch.depends_on is None
    assert run("law-encode-characters", training_on(change)) is None


@pytest.mark.parametrize("char", ["\x02", "$", "~", "\u0300", "\ue000"])
def test_a_trainer_without_special_tokens_that_leaves_a_character_unmerged_is_found(char: str) -> None:
    class LeavesItUnmerged(Whole):
        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
            if special_tokens:
                raise NotImplementedError
            learned = super().train(text, vocab_size, special_tokens, pattern).merges
            merges = [pair for pair in learned if char.encode() not in pair]
            return textbook.build_vocab(merges, []), merges

    assert run("law-train-characters", LeavesItUnmerged) is not None


def keyed_by(key: Callable[[bytes], Hashable]) -> type[Whole]:
    """Return a class that looks up ids by a key of the token; of equal keys, the last one counts."""

    class Keyed(Whole):
        def encode(self, text: str, **choice: Any) -> list[int]:
            ids = {key(token): index for index, token in self.vocab.items()}
            return [ids[key(self.vocab[index])] for index in super().encode(text, **choice)]

    return Keyed


def canonical(token: bytes) -> Hashable:
    try:
        return unicodedata.normalize("NFC", token.decode("utf-8"))
    except UnicodeDecodeError:
        return token


class MergesEqualNumbers(Whole):
    """Compares the strings of a pair with `==` of PHP: 01 is 1."""

    def merge(self, word: Any) -> Any:
        def key(token: bytes) -> Hashable:
            return int(token) if token.isdigit() else token

        ranks: dict[Any, int] = {}
        for rank, (left, right) in enumerate(self.merges):
            ranks.setdefault((key(left), key(right)), rank)
        while True:
            pairs = [(ranks.get((key(left), key(right))), at) for at, (left, right) in enumerate(pairwise(word))]
            found = min(((rank, at) for rank, at in pairs if rank is not None), default=None)
            if found is None or word[found[1]] + word[found[1] + 1] not in self.ids:
                return word
            at = found[1]
            word = (*word[:at], word[at] + word[at + 1], *word[at + 2 :])


class EmitsKnownPreTokens(Whole):
    """Emits a pre-token whole if its id is below that of the byte 0."""

    def encode_pre_token(self, pre_token: str) -> list[int]:
        index = self.ids.get(pre_token.encode(), 1 << 40)
        return [index] if index < self.ids[b"\0"] else super().encode_pre_token(pre_token)


class AddsPositionsToRanks(Whole):
    """Orders merges by the rank plus the position divided by the number of characters."""

    def merge(self, word: Any) -> Any:
        length = len(b"".join(word).decode("utf-8", "ignore")) or 1
        while True:
            pairs = list(pairwise(word))
            found = [(self.ranks[pair] + at / length, at) for at, pair in enumerate(pairs) if pair in self.ranks]
            if not found:
                return word
            _, at = min(found)
            word = (*word[:at], word[at] + word[at + 1], *word[at + 2 :])


@pytest.mark.parametrize(
    ("target", "clause"),
    [
        (keyed_by(canonical), ""),
        (keyed_by(lambda token: token.decode("utf-8", "backslashreplace").lower()), ""),
        (keyed_by(lambda token: int(token) if token.isdigit() and len(token) > 1 else token), ""),
        (MergesEqualNumbers, ""),
        (AddsPositionsToRanks, ""),
        (EmitsKnownPreTokens, "MERGE-WHOLE-1"),
    ],
)
def test_an_encoder_that_confuses_tokens_is_found(target: type, clause: str) -> None:
    found = run("law-encode-characters", target)
    assert found is not None
    assert found.mismatch.depends_on is None
    assert found.mismatch.clause_id == clause


@pytest.mark.parametrize("property_id", PROPERTIES)
def test_a_correct_tokenizer_passes(property_id: str) -> None:
    assert run(property_id, Whole) is None


def test_nothing_is_left_out() -> None:
    assert {*complete.MARKS} <= {*complete.every_kind()}


def test_spans_of_words_of_equal_lengths_in_characters_and_in_bytes_are_distinguished() -> None:
    class Owners(Whole):
        """Keeps which character each byte of a word belongs to, by the numbers of both."""

        def encode_with_offsets(self, text: str) -> Any:
            ids, owners, start = self.encode(text), list[int](), 0
            known: dict[Any, list[int]] = self.__dict__.setdefault("_owners", {})
            for word in textbook.split(text):
                new = [at for at, char in enumerate(word) for _ in char.encode()]
                owner = known.setdefault((len(word), len(new)), new) if len(word) > 2 else new
                owners += [start + at for at in owner]
                start += len(word)
            ends = [0, *accumulate(len(self.vocab[index]) for index in ids)]
            return ids, [(owners[first], owners[last - 1] + 1) for first, last in pairwise(ends)]

    found = run("law-cached-offsets", Owners)
    assert found is not None
    assert found.mismatch.depends_on is None
