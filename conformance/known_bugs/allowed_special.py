"""Incorrect choice of special tokens: the arguments `allowed_special` and `disallowed_special`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

from bpe_conformance.reference import textbook

from .correct import Encoder
from .variants import add_variants

Segments = list[tuple[str, bool]]


class _Choosing(Encoder):
    """Accepts both arguments, in steps. It is correct; without the arguments, it finds all special tokens."""

    def encode(
        self,
        text: str,
        *,
        allowed_special: Collection[str] | None = None,
        disallowed_special: Collection[str] | None = None,
    ) -> list[int]:
        if allowed_special is None or disallowed_special is None:
            return super().encode(text)
        allowed = self.allowed(allowed_special)
        disallowed = self.disallowed(disallowed_special, allowed)
        if self.refuses(text, disallowed, allowed):
            raise ValueError("the text contains a disallowed special token")
        ids: list[int] = []
        for segment, special in self.cut_among(text, allowed):
            ids += [self.special_id(segment)] if special else self.encode_segment(segment)
        return ids

    def allowed(self, allowed_special: Collection[str]) -> list[str]:
        """Return the special tokens to find."""
        return [token for token in self.special if allowed_special == "all" or token in allowed_special]

    def disallowed(self, disallowed_special: Collection[str], allowed: list[str]) -> list[str]:
        """Return the special tokens that the text must not contain."""
        if disallowed_special == "all":
            return [token for token in self.special if token not in allowed]
        return list(disallowed_special)

    def refuses(self, text: str, disallowed: list[str], allowed: list[str]) -> bool:
        """Return whether the text contains one of them."""
        return any(token in text for token in disallowed)

    def cut_among(self, text: str, allowed: list[str]) -> Segments:
        """Return the segments of the text, and whether each is a special token."""
        return textbook.cut_special(text, allowed)


class PlainSpecialsDropped(_Choosing):
    def cut_among(self, text: str, allowed: list[str]) -> Segments:
        kept = [
            segment
            for segment, special in textbook.cut_special(text, self.special)
            if not special or segment in allowed
        ]
        return textbook.cut_special("".join(kept), allowed)


class PlainSpecialsScanned(_Choosing):
    def cut_among(self, text: str, allowed: list[str]) -> Segments:
        segments: Segments = []
        for segment, _ in textbook.cut_special(text, self.special):
            if segment in allowed:
                segments.append((segment, True))
            elif segments and not segments[-1][1]:
                segments[-1] = (segments[-1][0] + segment, False)
            else:
                segments.append((segment, False))
        return segments


class DisallowedDropped(_Choosing):
    def refuses(self, text: str, disallowed: list[str], allowed: list[str]) -> bool:
        return False

    def disallowed(self, disallowed_special: Collection[str], allowed: list[str]) -> list[str]:
        self.dropped = super().disallowed(disallowed_special, allowed)
        return self.dropped

    def cut_among(self, text: str, allowed: list[str]) -> Segments:
        for token in self.dropped:
            text = text.replace(token, "")
        return super().cut_among(text, allowed)


class OthersDisallowed(_Choosing):
    def refuses(self, text: str, disallowed: list[str], allowed: list[str]) -> bool:
        return super().refuses(
            text, [*disallowed, *set(self.special).difference(allowed)] if disallowed else [], allowed
        )


add_variants(
    __name__,
    _Choosing,
    allowed={
        "EmptyAllowedMeansAll": lambda self, allowed_special: _Choosing.allowed(self, allowed_special or "all"),
        "AllComparedAsText": lambda self, allowed_special: [
            token for token in self.special if token in allowed_special
        ],
    },
    refuses={
        "DisallowedNotLookedAt": lambda self, text, disallowed, allowed: False,
        "DisallowedAmongPreTokens": lambda self, text, disallowed, allowed: any(
            word in disallowed for word in text.split()
        ),
        "DisallowedAmongFound": lambda self, text, disallowed, allowed: any(
            special and one in disallowed for one, special in textbook.cut_special(text, self.special)
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
    cut_among={
        "AllowedNotLookedAt": lambda self, text, allowed: textbook.cut_special(text, self.special),
        "PlainSpecialsCut": lambda self, text, allowed: (
            [(segment, segment in allowed) for segment, _ in textbook.cut_special(text, self.special)]
        ),
    },
    disallowed={
        "EmptyDisallowedMeansAll": lambda self, disallowed_special, allowed: _Choosing.disallowed(
            self, disallowed_special or "all", allowed
        ),
        "DisallowedAllIsAll": lambda self, disallowed_special, allowed: (
            self.special if disallowed_special == "all" else list(disallowed_special)
        ),
    },
)
