"""Encoding a text, with all special tokens or a choice of them; entries of a vocabulary; the constructor alone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from bpe_conformance.fixtures import Model
from bpe_conformance.fixtures.characters import has_surrogate

from ..answer import Acceptable, Accepted, Answer, Answers, AnyError, Divergence, Ids, Lossless, NewIds, Rows
from ..implementation.proxy import CallFailed, TokenizerProxy, answered
from . import divergence
from .operation import Call, Narrowed, Operation
from .setting import Setting

Choice: TypeAlias = "str | tuple[str, ...]"  # special tokens that a caller chooses: "all", or some


class Encoding(Operation):
    """An operation whose answer is the ids of one text, which is its field `text` unless it overrides `texts`."""

    text: str
    conformance_class = "encoder"

    def texts(self) -> Sequence[str]:
        return (self.text,)

    @property
    def whole_text(self) -> str:
        return self.texts()[0]

    def computed(self, setting: Setting) -> Acceptable:
        return Ids(tuple(setting.oracle.encode(self.whole_text)))

    def accepts(self, correct: Acceptable, answer: Answer, setting: Setting, receiver: Any = None) -> bool:
        match correct, answer:
            case NewIds(tokens), Ids(ids):
                return _has_new_ids(tokens, setting.table, ids)
            case Lossless(), Ids(ids):
                return _spelled(ids, setting.table, receiver) == self.whole_text.encode("utf-8", "surrogatepass")
        return super().accepts(correct, answer, setting, receiver)

    def divergence(self, correct: Sequence[Acceptable], answer: Answer, setting: Setting) -> Divergence | None:
        right = next((one for one in correct if isinstance(one, Ids)), None)
        if right is None or not isinstance(answer, Ids) or has_surrogate(self.whole_text):
            return None
        return divergence.encoding(setting, self.whole_text, right.ids, answer.ids)


def _has_new_ids(tokens: Sequence[bytes], model: Model, ids: Sequence[int]) -> bool:
    """Return whether ids are those of `tokens`. Each token without an entry must have an id of its own, not in use."""
    entries = {token: index for index, token in model.vocab.items()}
    new: dict[bytes, int] = {}
    for token, index in zip(tokens, ids, strict=False):
        if token in entries:
            if index != entries[token]:
                return False
        elif index < 0 or index in model.vocab or new.setdefault(token, index) != index:
            return False
    return len(tokens) == len(ids) and len(set(new.values())) == len(new)


def _spelled(ids: Sequence[int], model: Model, tokenizer: TokenizerProxy | None) -> bytes:
    """Return the bytes of ids: from the model or, for the new id of a special token, from the tokenizer."""
    special = set(model.special_tokens or ())
    parts = []
    for index in ids:
        token = model.vocab.get(index, b"")
        if not token and special and tokenizer is not None:
            with suppress(CallFailed):  # an error of `decode` is none of `encode`
                token = text.encode("utf-8") if (text := tokenizer.decode([index])) in special else b""
        parts.append(token)
    return b"".join(parts)


@dataclass(frozen=True)
class Encode(Encoding):
    text: str
    name, needs = "encode", ("encode",)

    def of(self, receiver: TokenizerProxy) -> Answer:
        return Ids(tuple(receiver.encode(self.text)))

    def call(self) -> Call:
        return Call("encode", (self.text,))


@dataclass(frozen=True)
class EncodeAllowed(Encoding):
    text: str
    allowed_special: Choice
    disallowed_special: Choice
    name, needs = "encode_allowed", ("allowed_special",)
    is_recommended = True

    @property
    def choice(self) -> dict[str, Choice]:
        return {"allowed_special": self.allowed_special, "disallowed_special": self.disallowed_special}

    def of(self, receiver: TokenizerProxy) -> Answer:
        return Ids(tuple(receiver.encode_allowed(self.text, *self.choice.values())))

    def computed(self, setting: Setting) -> Acceptable:
        try:
            return Ids(tuple(setting.oracle.encode(self.text, **self.choice)))
        except ValueError:
            return AnyError("disallowed")

    def without_choice(self, model: Model, lookup: str) -> Model:
        named = model.special_tokens or ()
        allowed = tuple(token for token in named if self.allowed_special == "all" or token in self.allowed_special)
        if lookup == "pair":
            return replace(model, special_tokens=allowed)
        built = {left + right for left, right in model.merges}
        others = {token.encode("utf-8", "replace") for token in named if token not in allowed} - built
        # The lookup would find the entries of the others.
        vocab = {index: token for index, token in model.vocab.items() if len(token) == 1 or token not in others}
        return replace(model, vocab=vocab, special_tokens=allowed)

    def divergence(self, correct: Sequence[Acceptable], answer: Answer, setting: Setting) -> Divergence | None:
        like = self.without_choice(setting.table, setting.conventions["lookup"])
        ids = answer.ids if isinstance(answer, Ids) else ()
        found = divergence.chosen_token(setting.table, ids, like.special_tokens or ())
        return found or super().divergence(correct, answer, replace(setting, model=like))

    def call(self) -> Call:
        return Call("encode", (self.text,), self.choice)


@dataclass(frozen=True)
class Entries(Operation):
    """Thousands of short texts for one tokenizer, each by `encode`. A failure is that of the first incorrect one."""

    entries: tuple[str, ...]
    name, needs, conformance_class = "entries", ("encode",), "encoder"

    def of(self, receiver: TokenizerProxy) -> Answer:
        answers: list[Answer] = []
        for text in self.entries:
            answers.append(answered(lambda text=text: Ids(tuple(receiver.encode(text)))))  # type: ignore[misc]
            if not isinstance(answers[-1], Ids):
                break
        return Answers(tuple(answers))

    def computed(self, setting: Setting) -> Acceptable:
        return Rows(tuple(tuple(setting.oracle.encode(text)) for text in self.entries))

    def accepts(self, correct: Acceptable, answer: Answer, setting: Setting, receiver: object = None) -> bool:
        return isinstance(correct, Rows) and answer == Answers(tuple(map(Ids, correct.rows)))

    def narrowed(self, correct: Sequence[Acceptable], answer: Answer) -> Sequence[Narrowed]:
        (right,) = correct
        assert isinstance(right, Rows)
        # An error of the constructor is the answer to the first one.
        answers = answer.answers if isinstance(answer, Answers) else (answer,)
        rows = zip(self.entries, map(Ids, right.rows), answers, strict=False)
        return [Narrowed(Encode(text), (ids,), got) for text, ids, got in rows if got != ids]

    def call(self) -> Call:
        return Call("encode", None)

    def texts(self) -> Sequence[str]:
        return self.entries


@dataclass(frozen=True)
class Construct(Operation):
    """The constructor, which has to refuse the model, or to accept it."""

    text: str = ""  # what can be encoded to find out, where a runner cannot ask the constructor alone
    name, needs, conformance_class = "construct", ("encode",), "encoder"

    def of(self, receiver: TokenizerProxy) -> Answer:
        return Accepted()

    def computed(self, setting: Setting) -> Acceptable:
        return Accepted()

    def golden(self) -> None:
        return None

    def call(self) -> Call:
        return Call("", None, on="class")
