"""Incorrect choice of special tokens: the arguments `allowed_special` and `disallowed_special`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

from bpe_conformance.reference import textbook

from .correct import Encoder

Segments = list[tuple[str, bool]]


class _Choosing(Encoder):
    """Accepts both arguments, in steps; correct by itself. Without them it finds all special tokens."""

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
        """Return what the text must not contain."""
        if disallowed_special == "all":
            return [token for token in self.special if token not in allowed]
        return list(disallowed_special)

    def refuses(self, text: str, disallowed: list[str], allowed: list[str]) -> bool:
        """Return whether the text contains what it must not."""
        return any(token in text for token in disallowed)

    def cut_among(self, text: str, allowed: list[str]) -> Segments:
        """Return the segments of the text, and whether each is a special token."""
        return textbook.cut_special(text, allowed)


class AllowedNotLookedAt(_Choosing):
    """Finds every special token, allowed or not, because it never uses the argument."""

    clause = "SPECIAL-ALLOWED-1"
    fix = "Scan for the allowed ones only: [token for token in special_tokens if token in allowed_special]."
    evidence = "bpetokenizer 1.2.1 evaluates its argument special_tokens and does not use it"

    def cut_among(self, text: str, allowed: list[str]) -> Segments:
        return textbook.cut_special(text, self.special)


class EmptyAllowedMeansAll(_Choosing):
    """Writes `allowed_special or "all"`, in which an empty set is as false as None."""

    clause = "SPECIAL-ALLOWED-1"
    fix = "Compare with None: if allowed_special is None."

    def allowed(self, allowed_special: Collection[str]) -> list[str]:
        return super().allowed(allowed_special or "all")


class AllComparedAsText(_Choosing):
    """Asks `token in allowed_special` even if that is the string "all", which contains no special token."""

    clause = "SPECIAL-ALLOWED-1"
    fix = 'Replace "all" first: if allowed_special == "all": allowed_special = set(special_tokens).'
    evidence = 'one step from npm:ai-tokenizer@1.0.6, where "all" finds none'

    def allowed(self, allowed_special: Collection[str]) -> list[str]:
        return [token for token in self.special if token in allowed_special]


class PlainSpecialsCut(_Choosing):
    """Cuts the text at every special token and encodes the disallowed ones as segments of their own."""

    clause = "SPECIAL-ALLOWED-1"
    fix = "Cut at the allowed special tokens only, so that the others are split with the text around them."

    def cut_among(self, text: str, allowed: list[str]) -> Segments:
        return [(segment, segment in allowed) for segment, _ in textbook.cut_special(text, self.special)]


class PlainSpecialsDropped(_Choosing):
    """Deletes special tokens that are not allowed, as a filter of prompts does."""

    clause = "SPECIAL-ALLOWED-1"
    fix = "Leave the text unchanged, and cut it at the allowed special tokens only."

    def cut_among(self, text: str, allowed: list[str]) -> Segments:
        kept = [
            segment
            for segment, special in textbook.cut_special(text, self.special)
            if not special or segment in allowed
        ]
        return textbook.cut_special("".join(kept), allowed)


class PlainSpecialsBroken(_Choosing):
    """Inserts a space into special tokens that are not allowed, so that nobody takes them for one later."""

    clause = "SPECIAL-ALLOWED-1"
    fix = "Leave the text unchanged: its ids do not contain the special token, and decode to the same text."

    def cut_among(self, text: str, allowed: list[str]) -> Segments:
        for token in self.special:
            if token not in allowed:
                text = text.replace(token, f"{token[:1]} {token[1:]}")
        return textbook.cut_special(text, allowed)


class PlainSpecialsScanned(_Choosing):
    """Scans for all special tokens and skips a disallowed one as text, with the allowed one inside it."""

    clause = "SPECIAL-ALLOWED-1"
    fix = "Scan for the allowed ones only, or continue at the next character after the start of a disallowed one."

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


class EmptyDisallowedMeansAll(_Choosing):
    """Writes `disallowed_special or "all"`, in which an empty collection is as false as None."""

    clause = "SPECIAL-ALLOWED-1"
    fix = "Compare with None: if disallowed_special is None."

    def disallowed(self, disallowed_special: Collection[str], allowed: list[str]) -> list[str]:
        return super().disallowed(disallowed_special or "all", allowed)


class DisallowedNotLookedAt(_Choosing):
    """Never rejects a text, because encoding a disallowed special token as text seems safe enough."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "Before encoding: if any(token in text for token in disallowed): raise ValueError."

    def refuses(self, text: str, disallowed: list[str], allowed: list[str]) -> bool:
        return False


class DisallowedAmongPreTokens(_Choosing):
    """Looks for disallowed special tokens among words, and misses those with a space or a neighbour."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "Search the text before you split it: token in text."

    def refuses(self, text: str, disallowed: list[str], allowed: list[str]) -> bool:
        return any(word in disallowed for word in text.split())


class DisallowedAmongFound(_Choosing):
    """Looks for disallowed special tokens among those the scan finds, and misses one inside an allowed one."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "Search the text itself: token in text."

    def refuses(self, text: str, disallowed: list[str], allowed: list[str]) -> bool:
        return any(special and one in disallowed for one, special in textbook.cut_special(text, self.special))


class AllowedBeatsDisallowed(_Choosing):
    """Removes allowed special tokens from the disallowed ones, even if the caller named both."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = 'Exclude the allowed ones only if disallowed_special is "all".'

    def refuses(self, text: str, disallowed: list[str], allowed: list[str]) -> bool:
        return any(token in text for token in disallowed if token not in allowed)


class DisallowedAllIsAll(_Choosing):
    """Takes `disallowed_special="all"` to mean all special tokens, including the allowed ones."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = '"all" means those that are not allowed: set(special_tokens) - set(allowed).'

    def disallowed(self, disallowed_special: Collection[str], allowed: list[str]) -> list[str]:
        return self.special if disallowed_special == "all" else list(disallowed_special)


class DisallowedDropped(_Choosing):
    """Deletes disallowed special tokens from the text instead of raising an error."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "Raise an error: the caller needs to know."

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
    """Rejects every special token that is not allowed, even if the caller disallows others by name."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "Reject what disallowed_special contains, and nothing else."

    def refuses(self, text: str, disallowed: list[str], allowed: list[str]) -> bool:
        return super().refuses(
            text, [*disallowed, *set(self.special).difference(allowed)] if disallowed else [], allowed
        )


class DisallowedUnescaped(_Choosing):
    """Searches with an alternation without `re.escape`, so that <|e|> rejects every `<`."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "Escape each: '|'.join(map(re.escape, ...)), or test token in text."

    def refuses(self, text: str, disallowed: list[str], allowed: list[str]) -> bool:
        return bool(disallowed) and re.search("|".join(disallowed), text) is not None


class DisallowedInAnyCase(_Choosing):
    """Rejects special tokens in any case, though <|E|> is ordinary text for the scan."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "Search the text unchanged: what the scan treats as ordinary text is harmless."

    def refuses(self, text: str, disallowed: list[str], allowed: list[str]) -> bool:
        return any(token.lower() in text.lower() for token in disallowed)


class DisallowedLookAlikes(_Choosing):
    """Rejects what NFKC turns into a special token, though the scan treats it as text."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "Search the text unchanged: what the scan treats as ordinary text is harmless."

    def refuses(self, text: str, disallowed: list[str], allowed: list[str]) -> bool:
        return any(token in text or token in unicodedata.normalize("NFKC", text) for token in disallowed)
