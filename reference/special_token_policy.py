"""Implements `allowed_special` and `disallowed_special`, as in tiktoken.

A disallowed string in a text is an error. Allowed special tokens are recognized; all others are plain text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from .special_tokens import SpecialTokens
from .streaming import scan

Keywords = tuple[frozenset[str] | None, frozenset[str] | None]
"""`allowed_special` and `disallowed_special`; None means "all"."""


class SpecialTokenPolicy(NamedTuple):
    """Says what a call does with the special tokens of a tokenizer.

    Attributes:
        allowed: the special tokens that are recognized.
        disallowed: the strings that no text may contain.
    """

    allowed: tuple[str, ...]
    disallowed: SpecialTokens

    @classmethod
    def of(cls, special_tokens: Sequence[str], keywords: Keywords) -> SpecialTokenPolicy:
        """Return the policy for a tokenizer with `special_tokens`.

        Allowed strings that are not special tokens are ignored. Any string can be disallowed; "all" disallows the
        special tokens that are not allowed.

        >>> policy = SpecialTokenPolicy.of(["<|a|>", "<|b|>"], parse_policy({"<|a|>"}, "all"))
        >>> policy.allowed, policy.disallowed.tokens
        (('<|a|>',), ('<|b|>',))
        """
        allowed_special, disallowed_special = keywords
        allowed = tuple(token for token in special_tokens if allowed_special is None or token in allowed_special)
        if disallowed_special is None:
            disallowed_special = frozenset(special_tokens).difference(allowed)
        return cls(allowed, SpecialTokens(sorted(disallowed_special)))

    def check(self, text: str, name: str = "the text", offset: int = 0) -> None:
        """Check that a text, or the part of it that starts at `offset`, contains no disallowed string.

        Raises:
            ValueError: if it contains one; the message calls the text `name`.
        """
        if found := self.disallowed.find(text):
            start, end = found
            raise ValueError(
                f"{name} contains {text[start:end]!a} at character {offset + start}, which is disallowed; "
                "allow it with allowed_special, or encode it as plain text with disallowed_special=()"
            )

    def checked(self, chunks: Iterable[str], name: str = "the text") -> Iterable[str]:
        """Return the text of `chunks` in parts, each as soon as no disallowed string can extend past its end.

        Raises:
            ValueError: during iteration, if the text contains such a string; the message calls the text `name`.

        >>> policy = SpecialTokenPolicy.of(["<|e|>"], parse_policy((), "all"))
        >>> list(policy.checked(["a<", "|e", ">"]))
        ['a', '<|e>']
        """
        return self._check_parts(chunks, name) if self.disallowed.tokens else chunks

    def _check_parts(self, chunks: Iterable[str], name: str) -> Iterator[str]:
        offset = 0
        for text, _ in scan(chunks, self.disallowed):
            self.check(text, name, offset)
            yield text
            offset += len(text)


def parse_policy(allowed_special: Collection[str] | None, disallowed_special: Collection[str] | None) -> Keywords:
    """Return the keywords of a call. If both are None, all tokens are allowed; if one is, it has tiktoken's default.

    Raises:
        ValueError: if one is neither "all" nor a collection of strings, or an empty string is disallowed.
    """
    if allowed_special is None and disallowed_special is None:
        return None, frozenset()
    allowed = _strings("allowed_special", () if allowed_special is None else allowed_special)
    disallowed = _strings("disallowed_special", "all" if disallowed_special is None else disallowed_special)
    if disallowed and "" in disallowed:
        raise ValueError("disallowed_special contains an empty string, which occurs in every text")
    return allowed, disallowed


def _strings(parameter: str, value: Collection[str]) -> frozenset[str] | None:
    if isinstance(value, str) and value == "all":
        return None
    if isinstance(value, str) or not isinstance(value, Collection):
        raise ValueError(f'{parameter} is {value!a}; give "all" or a set of strings')
    for one in value:
        if not isinstance(one, str):
            raise ValueError(f'{parameter} contains {one!a}; give "all" or a set of strings')
    return frozenset(value)
