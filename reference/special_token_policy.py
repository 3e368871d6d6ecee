"""Which special tokens a text may hold: `allowed_special` and `disallowed_special`, as tiktoken has them.

What is disallowed is an error wherever it stands; of the special tokens, those that are allowed are found, and the text
of the others is plain text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from .special_tokens import SpecialTokens
from .streaming import fragments

Wanted = tuple[frozenset[str] | None, frozenset[str] | None]
"""What is allowed and what is disallowed; None is all."""


class Choice(NamedTuple):
    """A choice among the special tokens of a tokenizer.

    Attributes:
        allowed: those that are found.
        refused: what no text may hold.
    """

    allowed: tuple[str, ...]
    refused: SpecialTokens

    @classmethod
    def of(cls, special_tokens: Sequence[str], wanted: Wanted) -> Choice:
        """Return the choice among `special_tokens`.

        What is allowed and no special token is passed over; what is disallowed need be none. "All" of those that are
        disallowed are the special tokens that are not allowed.

        >>> choice = Choice.of(["<|a|>", "<|b|>"], wanted_of({"<|a|>"}, "all"))
        >>> choice.allowed, choice.refused.tokens
        (('<|a|>',), ('<|b|>',))
        """
        allowing, refusing = wanted
        allowed = tuple(token for token in special_tokens if allowing is None or token in allowing)
        refused = frozenset(special_tokens).difference(allowed) if refusing is None else refusing
        return cls(allowed, SpecialTokens(sorted(refused)))

    def check(self, text: str, name: str = "the text") -> None:
        """Look for what is refused.

        Raises:
            ValueError: if `text`, which the message calls `name`, holds it.
        """
        if found := self.refused.find(text):
            start, end = found
            raise _refusal(name, text[start:end], start)

    def checked(self, chunks: Iterable[str], name: str = "the text") -> Iterable[str]:
        """Return the text of `chunks`, to be read part by part, each as soon as it cannot be part of what is refused.

        Raises:
            ValueError: while it is read, if the text, which the message calls `name`, holds what is refused.

        >>> choice = Choice.of(["<|e|>"], wanted_of((), "all"))
        >>> list(choice.checked(["a<", "|e", ">"]))
        ['a', '<|e>']
        """
        return self._watched(chunks, name) if self.refused.tokens else chunks

    def _watched(self, chunks: Iterable[str], name: str) -> Iterator[str]:
        place = 0
        for text, is_refused in fragments(chunks, self.refused):
            if is_refused:
                raise _refusal(name, text, place)
            yield text
            place += len(text)


def wanted_of(allowed_special: Collection[str] | None, disallowed_special: Collection[str] | None) -> Wanted:
    """Return what a call asks for. Of two arguments that are None all is allowed, of one it is tiktoken's default.

    Raises:
        ValueError: if one is neither "all" nor a collection of strings, or an empty string is disallowed.
    """
    if allowed_special is None and disallowed_special is None:
        return None, frozenset()
    allowed = _strings("allowed_special", () if allowed_special is None else allowed_special)
    disallowed = _strings("disallowed_special", "all" if disallowed_special is None else disallowed_special)
    if disallowed and "" in disallowed:
        raise ValueError("disallowed_special holds an empty string, which stands in every text")
    return allowed, disallowed


def _strings(parameter: str, value: Collection[str]) -> frozenset[str] | None:
    if isinstance(value, str) and value == "all":
        return None
    if isinstance(value, str) or not isinstance(value, Collection):
        raise ValueError(f'{parameter} is {value!a}; give "all", or a set of strings')
    for one in value:
        if not isinstance(one, str):
            raise ValueError(f'{parameter} holds {one!a}; give "all", or a set of strings')
    return frozenset(value)


def _refusal(name: str, token: str, place: int) -> ValueError:
    return ValueError(
        f"{name} holds {token!a} at character {place}, which is disallowed; "
        "allow it (allowed_special), or have it encoded as plain text (disallowed_special=())"
    )
