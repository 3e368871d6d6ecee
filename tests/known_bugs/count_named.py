"""Counts the strangers whose mistake the search for causes names: `PYTHONPATH=tests python -m known_bugs.count_named`.

A name is right if it describes the mistake, and half right if it describes a part or an effect of it; any other name is
wrong. Who adds a name to this table has read both classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from helpers.outcomes import outcomes_of
from known_bugs.strangers import STRANGERS

from bpe_conformance.known_bugs.causes import diagnose
from bpe_conformance.spec import Case, installed_spec
from bpe_conformance.terminal.causes import name

RIGHT: dict[str, set[str]] = {
    "MaximalMunch": {"longest-match"},
    "EveryPairAtOnce": {"greedy-left-to-right"},
    "FirstOccurrenceOnly": {"each-merge-once"},
    "HashedRanks": {"undeclared lookup=bytes", "ranks-keyed-by-result"},
    "EndMarked": {"beginning-marked"},
    "Compatibility": {"encodes-nfkc"},
    "Lowercases": {"encodes-lower-case"},
    "StripsDocument": {"encodes-stripped"},
    "AsciiPattern": {"classes-ascii", "letters-ascii", "white-space-of-python"},
    "WordCharacters": {"word-characters-by-re"},
    "NamesInGivenOrder": {"specials-in-list-order", "special-tokens-in-list-order"},
    "NamesNotEscaped": {"specials-unescaped", "special-tokens-not-escaped"},
    "SpaceAroundNames": {"segments-stripped"},
    "TokenByToken": {"tokens-decoded-apart"},
    "DropsBrokenBytes": {"malformed-bytes-ignored"},
    "UnknownIdsSkipped": {"unknown-ids-skipped"},
    "NamesByPosition": {"known-special-gets-new-id"},
    "NamesNotDecoded": {"specials-left-out"},
    "KeepsTheRest": {"end-not-flushed", "stream-cut-short"},
    "ChunkByChunk": {"chunks-encoded-alone"},
    "LineByLine": {"encoded-by-line"},
    "RowsOfOneLength": {"rows-padded"},
    "DistinctWords": {"distinct-words-only"},
    "NamesRemoved": {"special-tokens-deleted"},
    "NoRoomForNames": {"special-tokens-not-counted"},
    "SortedPairs": {"undeclared tie_break=lex-smaller"},
    "LinesStripped": {"line-by-line"},
    "NoPreTokens": {"no-pre-tokens"},
    "EveryFirstLineSkipped": {"first-line-dropped"},
    "CommentsSkipped": {"number-sign-lines-skipped"},
}
HALF: dict[str, set[str]] = {
    "HeaderAlwaysSkipped": {"rank-zero-falsy"},
    "Lowercases": {"characters-replaced"},
    "NoTrailingSpace": {"white-space-changed"},
    "AsciiPattern": {"numbers-ascii", "numbers-decimal-only", "words-by-re-in-training"},
    "WordsAndSpaces": {"punctuation-glued-to-words"},
    "WordCharacters": {"words-by-re", "words-by-re-in-training"},
    "NamesNotEscaped": {"KeyError"},
    "NamesRemoved": {"special-tokens-cut-one-by-one", "special-tokens-in-list-order"},
    "LinesStripped": {"line-ends-translated"},
    "StaleNeighbours": {"stale-heap-entry"},
}
OF_PLAIN = "all-chunks-joined"
"""Every stranger joins the chunks of a stream, as `Plain` does. A SHOULD is about it; it is never the mistake."""


def verdict(stranger: str, causes: Sequence[str]) -> str:
    """Return `right` if all names are, or half right after a right one; else `half`, `wrong` or `not named`."""
    names = [set(cause.split(" or ")) for cause in causes if cause != OF_PLAIN]
    if not names:
        return "not named"
    right = [bool(found & RIGHT.get(stranger, set())) for found in names]
    half = [bool(found & HALF.get(stranger, set())) for found in names]
    if right[0] and all(map(max, right, half)):
        return "right"
    return "half" if any(right) or any(half) else "wrong"


def named(stranger: type, cases: Sequence[Case]) -> list[str]:
    """Return the names of the causes of a tokenizer's failures in golden cases."""
    return [name(cause) for cause in diagnose(outcomes_of(stranger, cases), cases).causes]


if __name__ == "__main__":
    total: Counter[str] = Counter()
    for stranger in STRANGERS:
        names = named(stranger, installed_spec().cases)
        found = verdict(stranger.__name__, names)
        total[found] += 1
        print(f"{stranger.__name__:<24}{found:<12}{'; '.join(names)}", flush=True)
    print(", ".join(f"{found} {number}" for found, number in total.most_common()), f"of {len(STRANGERS)}")
