"""The correct tokenizers from which the known bugs derive: the textbook's steps in the shape of the protocol."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from bpe_conformance.fixtures import PATTERNS, Merge, spell, unspell
from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.reference import textbook
from bpe_conformance.reference.formats import huggingface
from bpe_conformance.reference.textbook import Segments, Word, Words

E = TypeVar("E", bound=textbook.Encoding)
NAMES = ("<s>", "</s>", "<unk>", "[PAD]", "<|im_start|>")  # names of special tokens that people write into their code

INHERITED = frozenset({"constructor", "toString", "valueOf", "hasOwnProperty", "isPrototypeOf", "__proto__"})
"""Members of every plain object in JavaScript."""


class BaseTrainer(textbook.Training):
    """Only trains. A subclass can declare conventions of training, and its pattern."""

    conventions: ClassVar[Mapping[str, str]] = {}
    pattern: ClassVar[str] = "gpt2"
    vocab: dict[int, bytes]
    merges: list[Merge]

    def __init__(self) -> None:
        declared = {**DEFAULTS, **self.conventions}
        super().__init__(declared["tie_break"], declared["byte_order"], declared["train_special"])
        self.id_layout = declared["id_layout"]

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str], pattern: str | None = None) -> BaseTrainer:
        trained = cls()
        expression = PATTERNS.get(cls.pattern, cls.pattern) if pattern is None else pattern
        trained.merges = trained.run(text, vocab_size, special_tokens, expression)
        trained.vocab = trained.build_vocab(trained.merges, trained.special)
        return trained

    def build_vocab(self, merges: list[Merge], special: list[str]) -> dict[int, bytes]:
        return textbook.build_vocab(merges, special, self.byte_order, self.id_layout)


def following(bases: tuple[type, ...], conventions: Mapping[str, str]) -> type:
    """Return a class that follows and declares these conventions; the pattern is one of them."""
    declared = {name: value for name, value in conventions.items() if name != "pattern"}
    own = {"pattern": conventions["pattern"]} if "pattern" in conventions else {}
    return type(bases[0].__name__, bases, {"conventions": declared, **own})


class BaseEncoder(textbook.Encoding):
    """Encodes, decodes, streams, saves and loads."""

    enough = 2_048  # how many characters a stream collects before it looks for a position to cut
    cuts = r"(?<=\S)(?= \S)"  # where it cuts

    def encode(self, text: str) -> list[int]:
        return self.encode_segments(self.cut(text))

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        ids = self.encode(text)
        return ids, self.spans(text, ids)

    def cut(self, text: str) -> Segments:
        return self.find_special(text, self.special)

    def merge(self, word: Word) -> Word:
        """Merge the pair of the lowest rank at all its positions at once, as GPT-2 does: long runs need it."""
        if word not in self.tokens_of:
            tokens = word
            while ranked := [
                (self.ranks[pair], at, pair) for at, pair in enumerate(pairwise(tokens)) if pair in self.ranks
            ]:
                tokens = self.replace(tokens, min(ranked)[2])
            self.tokens_of[word] = tokens
        return self.tokens_of[word]

    @cached_property
    def tokens_of(self) -> dict[Word, Word]:
        """The tokens of earlier words, which long texts repeat."""
        return {}

    def replace(self, word: Word, pair: Merge) -> Word:
        return textbook.replace(word, pair)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        held = ""
        for chunk in chunks:
            held += chunk
            ready = self.ready(held)
            yield from self.encode(held[:ready])
            held = held[ready:]
        yield from self.at_end(held)

    def at_end(self, held: str) -> list[int]:
        return self.encode(held)

    def ready(self, held: str) -> int:
        """Return how many characters of `held` no later text can change: those before the last single space."""
        is_safe = self.pattern in PATTERNS.values() and self.pattern != PATTERNS["none"]
        if len(held) < self.enough or not is_safe or self.pipeline is not None:
            return 0
        settled = held[: max(0, len(held) - max(map(len, self.special), default=0))]
        inside: set[int] = set()
        end = 0
        for segment, is_special in self.cut(held):
            inside |= set(range(end + 1, end + len(segment))) if is_special else set()
            end += len(segment)
        cuts = {match.start() for match in re.finditer(self.cuts, settled)}
        return max(cuts - inside, default=0)

    # As the proxy of an implementation does, so that an operation can ask a known bug directly

    def detokenize(self, ids: Iterable[int]) -> str:
        return "".join(self.decode_iterable(ids))

    def stream(self, chunks: Iterable[str]) -> list[int]:
        return [*self.encode_iterable(chunks)]

    # Files in GPT-2's format

    def save(self, folder: str) -> None:
        entries = {self.spelling(token): index for index, token in self.entries()}
        Path(folder, "vocab.json").write_text(json.dumps(entries), "utf-8")
        lines = [self.line(self.spelling(left), self.spelling(right)) for left, right in self.saved_merges()]
        Path(folder, "merges.txt").write_text("\n".join(["#version: 0.2", *lines, ""]), "utf-8")

    def entries(self) -> Iterable[tuple[int, bytes]]:
        return self.vocab.items()

    def saved_merges(self) -> Sequence[Merge]:
        return self.merges

    def spelling(self, token: bytes) -> str:
        return token.decode("utf-8") if token.decode("utf-8", "replace") in self.special else spell(token)

    def line(self, left: str, right: str) -> str:
        return f"{left} {right}"

    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: Sequence[str] | None = None) -> BaseEncoder:
        special = set(special_tokens or ())
        entries = cls.loaded_entries(json.loads(Path(vocab_path).read_bytes().decode("utf-8")))
        vocab = {index: name.encode("utf-8") if name in special else cls.bytes_of(name) for name, index in entries}
        lines = cls.lines(Path(merges_path).read_bytes().decode("utf-8"))
        return cls(vocab, cls.loaded_merges([cls.pair(line) for line in lines], vocab), special_tokens)

    @classmethod
    def from_tokenizer_json(cls, path: str) -> BaseEncoder:
        model = huggingface.read(path)
        return cls(model.vocab, model.merges, pipeline=model.steps)

    @classmethod
    def loaded_entries(cls, entries: dict[str, int]) -> Iterable[tuple[str, int]]:
        return entries.items()

    @classmethod
    def lines(cls, text: str) -> list[str]:
        lines = text.replace("\r\n", "\n").split("\n")
        return [line for line in lines[lines[0].startswith("#version") :] if line]

    @classmethod
    def pair(cls, line: str) -> Merge:
        left, right = line.split(" ")
        return cls.bytes_of(left), cls.bytes_of(right)

    @classmethod
    def loaded_merges(cls, merges: list[Merge], vocab: dict[int, bytes]) -> list[Merge]:
        return merges

    @classmethod
    def bytes_of(cls, spelling: str) -> bytes:
        return unspell(spelling)


def trainer_like(encoder: type[BaseEncoder]) -> type[BaseTrainer]:
    """Return a trainer that finds special tokens and splits texts as an encoder does."""

    class Trainer(BaseTrainer):
        def words(self, text: str, special: list[str], pattern: str) -> Words:
            steps = encoder.__new__(encoder)
            boundaries = special if self.train_special == "boundary" else []
            vars(steps).update(pattern=pattern, special=boundaries, pipeline=None)
            segments = [segment for segment, is_special in steps.cut(text) if not is_special]
            counts = Counter(piece for segment in segments for piece in steps.split(segment))
            return [(self.atoms(piece), count) for piece, count in counts.items()]

    return Trainer


def like(encoder: textbook.Encoding, kind: type[E], **changes: object) -> E:
    """Return an encoder of another class, or with other attributes; it shares the tables, which take long to build."""
    other = kind.__new__(kind)
    vars(other).update({**vars(encoder), **changes})
    return other


def sized(size: int, step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a step for `add_variants` whose class has the attribute `size`."""
    step.size = size  # type: ignore[attr-defined]
    return step


def add_variants(module: str, base: type, **steps: Mapping[str, Any]) -> None:
    """Add subclasses of `base`, each of which replaces one step by one expression, or changes one value.

    Args:
        module: the name of the module that gets them.
        base: a correct tokenizer.
        steps: name of a method or value → name of a subclass → the method or value in that subclass.
    """
    for step, bodies in steps.items():
        is_classmethod = isinstance(inspect.getattr_static(base, step), classmethod)
        for name, body in bodies.items():
            space = {step: classmethod(body) if is_classmethod else body, "__module__": module}
            space |= {"size": body.size} if hasattr(body, "size") else {}
            setattr(sys.modules[module], name, type(name, (base,), space))
