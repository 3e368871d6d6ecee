"""Wrong with text from outside: look-alikes of special tokens, `allowed_special` and `disallowed_special`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

from bpe_conformance.reference import textbook

from .plain import Encoder

Segments = list[tuple[str, bool]]


# Look-alikes


class ScansWithoutInvisible(Encoder):
    """Takes zero-width and other format characters out of a text if it then holds a special token."""

    clause = "SPECIAL-EXACT-1"
    fix = "Leave the text as it is: what does not spell a special token exactly is ordinary text."

    def prepare(self, text: str) -> str:
        seen = "".join(char for char in text if unicodedata.category(char) != "Cf")
        return seen if any(token in seen and token not in text for token in self.special) else text


class ScansNormalised(Encoder):
    """Normalises a text by NFKC if it then holds a special token, so that full-width letters do not hide one."""

    clause = "SPECIAL-EXACT-1"
    fix = "Leave the text as it is: what does not spell a special token exactly is ordinary text."

    def prepare(self, text: str) -> str:
        seen = unicodedata.normalize("NFKC", text)
        return seen if any(token in seen and token not in text for token in self.special) else text


# The arguments


class _Choosing(Encoder):
    """Takes both arguments, in steps; right as it stands. Without them it finds all special tokens."""

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
        barred = self.barred(disallowed_special, allowed)
        if self.refuses(text, barred, allowed):
            raise ValueError("the text holds a disallowed special token")
        ids: list[int] = []
        for segment, special in self.cut_among(text, allowed):
            ids += [self.special_id(segment)] if special else self.encode_segment(segment)
        return ids

    def allowed(self, allowed_special: Collection[str]) -> list[str]:
        """Return the special tokens that are found."""
        return [token for token in self.special if allowed_special == "all" or token in allowed_special]

    def barred(self, disallowed_special: Collection[str], allowed: list[str]) -> list[str]:
        """Return what the text must not hold."""
        if disallowed_special == "all":
            return [token for token in self.special if token not in allowed]
        return list(disallowed_special)

    def refuses(self, text: str, barred: list[str], allowed: list[str]) -> bool:
        """Whether the text holds it."""
        return any(token in text for token in barred)

    def cut_among(self, text: str, allowed: list[str]) -> Segments:
        """Return the segments of the text, and whether each is a special token."""
        return textbook.cut_special(text, allowed)


class AllowedNotLookedAt(_Choosing):
    """Finds every special token, whatever is allowed: the argument is passed on and never used."""

    clause = "SPECIAL-ALLOWED-1"
    fix = "Look for the allowed special tokens only: [token for token in special_tokens if token in allowed_special]."

    def cut_among(self, text: str, allowed: list[str]) -> Segments:
        return textbook.cut_special(text, self.special)


class EmptyAllowedMeansAll(_Choosing):
    """Writes `allowed_special or "all"`, where an empty set is false as None is, so that nothing allowed is all."""

    clause = "SPECIAL-ALLOWED-1"
    fix = "Compare with None: if allowed_special is None."

    def allowed(self, allowed_special: Collection[str]) -> list[str]:
        return super().allowed(allowed_special or "all")


class AllComparedAsText(_Choosing):
    """Asks `token in allowed_special` also where that is the string "all", in which no special token stands."""

    clause = "SPECIAL-ALLOWED-1"
    fix = 'Replace "all" first: if allowed_special == "all": allowed_special = set(special_tokens).'

    def allowed(self, allowed_special: Collection[str]) -> list[str]:
        return [token for token in self.special if token in allowed_special]


class PlainSpecialsCut(_Choosing):
    """Cuts the text at every special token and encodes those that are not allowed as segments of their own."""

    clause = "SPECIAL-ALLOWED-1"
    fix = "Cut at the allowed special tokens only, so that the others are split with the text around them."

    def cut_among(self, text: str, allowed: list[str]) -> Segments:
        return [(segment, segment in allowed) for segment, _ in textbook.cut_special(text, self.special)]


class PlainSpecialsDropped(_Choosing):
    """Takes special tokens that are not allowed out of the text, as a filter of prompts does."""

    clause = "SPECIAL-ALLOWED-1"
    fix = "Leave the text as it is, and cut it at the allowed special tokens only."

    def cut_among(self, text: str, allowed: list[str]) -> Segments:
        kept = [
            segment
            for segment, special in textbook.cut_special(text, self.special)
            if not special or segment in allowed
        ]
        return textbook.cut_special("".join(kept), allowed)


class PlainSpecialsBroken(_Choosing):
    """Sets a space into special tokens that are not allowed, so that nobody takes them for one later."""

    clause = "SPECIAL-ALLOWED-1"
    fix = "Leave the text as it is: its ids do not hold that of the special token, and decode to the same text."

    def cut_among(self, text: str, allowed: list[str]) -> Segments:
        for token in self.special:
            if token not in allowed:
                text = text.replace(token, f"{token[:1]} {token[1:]}")
        return textbook.cut_special(text, allowed)


class PlainSpecialsScanned(_Choosing):
    """Scans for all special tokens and takes one that is not allowed as text, with the allowed one inside it."""

    clause = "SPECIAL-ALLOWED-1"
    fix = "Scan for the allowed special tokens only, or go on at the next character behind one that is not allowed."

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
    """Writes `disallowed_special or "all"`, where an empty collection is false as None is."""

    clause = "SPECIAL-ALLOWED-1"
    fix = "Compare with None: if disallowed_special is None."

    def barred(self, disallowed_special: Collection[str], allowed: list[str]) -> list[str]:
        return super().barred(disallowed_special or "all", allowed)


class DisallowedNotLookedAt(_Choosing):
    """Never refuses a text: what is not allowed is plain text, which seems safe enough."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "Before encoding: if any(token in text for token in disallowed): raise ValueError."

    def refuses(self, text: str, barred: list[str], allowed: list[str]) -> bool:
        return False


class DisallowedAtTheEnds(_Choosing):
    """Looks for disallowed special tokens at both ends of the text, where a chat template would have them."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "Look in the whole text: token in text."

    def refuses(self, text: str, barred: list[str], allowed: list[str]) -> bool:
        return any(text.startswith(token) or text.endswith(token) for token in barred)


class DisallowedAmongPreTokens(_Choosing):
    """Looks for disallowed special tokens among words, in which those with a space or a neighbour never stand."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "Look in the text before it is split: token in text."

    def refuses(self, text: str, barred: list[str], allowed: list[str]) -> bool:
        return any(word in barred for word in text.split())


class DisallowedAmongFound(_Choosing):
    """Looks for disallowed special tokens among those that the scan finds, and misses one inside an allowed one."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "Look in the text itself: token in text."

    def refuses(self, text: str, barred: list[str], allowed: list[str]) -> bool:
        return any(special and one in barred for one, special in textbook.cut_special(text, self.special))


class AllowedBeatsDisallowed(_Choosing):
    """Takes what is allowed out of what is disallowed, also where the caller named both."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = 'Leave out what is allowed only where disallowed_special is "all".'

    def refuses(self, text: str, barred: list[str], allowed: list[str]) -> bool:
        return any(token in text for token in barred if token not in allowed)


class DisallowedAllIsAll(_Choosing):
    """Takes `disallowed_special="all"` for all special tokens, those that are allowed too."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "All are those that are not allowed: set(special_tokens) - set(allowed)."

    def barred(self, disallowed_special: Collection[str], allowed: list[str]) -> list[str]:
        return self.special if disallowed_special == "all" else list(disallowed_special)


class DisallowedDropped(_Choosing):
    """Takes disallowed special tokens out of the text where it should raise an error."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "Raise an error: the caller wants to hear of it."

    def refuses(self, text: str, barred: list[str], allowed: list[str]) -> bool:
        return False

    def barred(self, disallowed_special: Collection[str], allowed: list[str]) -> list[str]:
        self.dropped = super().barred(disallowed_special, allowed)
        return self.dropped

    def cut_among(self, text: str, allowed: list[str]) -> Segments:
        for token in self.dropped:
            text = text.replace(token, "")
        return super().cut_among(text, allowed)


class OthersDisallowed(_Choosing):
    """Refuses every special token that is not allowed, also where the caller disallows others by name."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "Refuse what disallowed_special holds, and nothing else."

    def refuses(self, text: str, barred: list[str], allowed: list[str]) -> bool:
        return super().refuses(text, [*barred, *set(self.special).difference(allowed)] if barred else [], allowed)


class DisallowedUnescaped(_Choosing):
    """Looks for what is disallowed by an alternation without `re.escape`, so that `<|e|>` refuses every `<`."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "Escape each: '|'.join(map(re.escape, ...)), or ask token in text."

    def refuses(self, text: str, barred: list[str], allowed: list[str]) -> bool:
        return bool(barred) and re.search("|".join(barred), text) is not None


class DisallowedInAnyCase(_Choosing):
    """Refuses special tokens in any case, though `<|E|>` is ordinary text for the scan."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "Compare the text as it is: what is ordinary text for the scan is no danger."

    def refuses(self, text: str, barred: list[str], allowed: list[str]) -> bool:
        return any(token.lower() in text.lower() for token in barred)


class DisallowedLookAlikes(_Choosing):
    """Refuses what NFKC makes a special token of, though the scan takes no notice of it."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "Compare the text as it is: what is ordinary text for the scan is no danger."

    def refuses(self, text: str, barred: list[str], allowed: list[str]) -> bool:
        return any(token in text or token in unicodedata.normalize("NFKC", text) for token in barred)


class DisallowedInvisible(_Choosing):
    """Refuses a text that holds a special token once format characters and white space are taken out."""

    clause = "SPECIAL-DISALLOWED-1"
    fix = "Compare the text as it is: what is ordinary text for the scan is no danger."

    def refuses(self, text: str, barred: list[str], allowed: list[str]) -> bool:
        seen = "".join(char for char in text if not char.isspace() and unicodedata.category(char) != "Cf")
        return any(token in text or token in seen for token in barred)
