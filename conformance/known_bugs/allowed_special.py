"""Incorrect choice of special tokens: the arguments `allowed_special` and `disallowed_special`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Segments

from .bases import BaseEncoder, add_variants


class _Choosing(BaseEncoder):
    """Accepts both arguments. It is correct; without the arguments, it finds all special tokens."""

    def encode(
        self,
        text: str,
        *,
        allowed_special: Collection[str] | None = None,
        disallowed_special: Collection[str] | None = None,
    ) -> list[int]:
        if allowed_special is None or disallowed_special is None:
            return super().encode(text)
        return self.encode_segments(self.segments(text, allowed_special, disallowed_special))


class PlainSpecialsDropped(_Choosing):
    def find_special(self, text: str, allowed: list[str]) -> Segments:
        kept = [
            segment
            for segment, special in textbook.cut_special(text, self.special)
            if not special or segment in allowed
        ]
        return textbook.cut_special("".join(kept), allowed)


class TextsCachedWithoutChoice(_Choosing):
    def find_special(self, text: str, allowed: list[str]) -> Segments:
        cache: dict[str, Segments] = self.__dict__.setdefault("cache", {})
        return cache.setdefault(text, super().find_special(text, allowed))


add_variants(
    __name__,
    _Choosing,
    allowed={
        "EmptyAllowedMeansAll": lambda self, allowed_special: _Choosing.allowed(self, allowed_special or "all"),
        "AllComparedAsText": lambda self, allowed: [token for token in self.special if token in allowed],
    },
    refuses={
        "DisallowedNotLookedAt": lambda self, text, disallowed, allowed: False,
        "DisallowedAmongPreTokens": lambda self, text, disallowed, allowed: any(
            word in disallowed for word in text.split()
        ),
        "DisallowedAmongFound": lambda self, text, disallowed, allowed: any(
            special and segment in disallowed for segment, special in textbook.cut_special(text, self.special)
        ),
        "AllowedBeatsDisallowed": lambda self, text, disallowed, allowed: any(
            token in text for token in disallowed if token not in allowed
        ),
        "DisallowedUnescaped": lambda self, text, disallowed, allowed: (
            bool(disallowed) and re.search("|".join(disallowed), text) is not None
        ),
        "DisallowedInAnyCase": lambda self, text, disallowed, allowed: any(
            token.lower() in text.lower() for token in disallowed
        ),
        "DisallowedLookAlikes": lambda self, text, disallowed, allowed: any(
            token in text or token in unicodedata.normalize("NFKC", text) for token in disallowed
        ),
    },
    find_special={
        "AllowedNotLookedAt": lambda self, text, allowed: textbook.cut_special(text, self.special),
        "PlainSpecialsCut": lambda self, text, allowed: (
            [(segment, segment in allowed) for segment, _ in textbook.cut_special(text, self.special)]
        ),
    },
    disallowed={
        "EmptyDisallowedMeansAll": lambda self, asked, allowed: _Choosing.disallowed(self, asked or "all", allowed),
        "DisallowedListIgnored": lambda self, asked, allowed: (
            _Choosing.disallowed(self, asked, allowed) if asked == "all" else []
        ),
        "DisallowedAllIsAll": lambda self, asked, allowed: self.special if asked == "all" else list(asked),
    },
)
