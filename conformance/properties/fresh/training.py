"""Fresh cases of training. A corpus is drawn for what it shows; each function that returns an input may return None."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bpe_conformance.reference import textbook

from .draws import CLASSES, Draw, Raw, in_turn, real_text, special_set, strewn
from .encoding import ALPHABETS, CONTRACTIONS, PIECES, RAW_TEXT, SPACE, metacharacters, near_misses

Corpus = Callable[[Draw], str]


def many_ties(draw: Draw) -> str:
    """Distinct words, each as often as the others, of letters that bytes, code units and ids order differently."""
    letters = draw.pick(("abz", "azA", "aé€z", "b߿ÿ", "a🦊€", "xyab", "z\ue000a🦊", "日本a", "a1Z", "\0-=", "\0\x01🦊"))
    words = dict.fromkeys(draw.walk(letters, draw.between(2, 5)) for _ in range(draw.between(3, 8)))
    return draw.pick((" ", "\n", ".")).join(draw.shuffled(list(words)) * draw.between(1, 2))


def ties_of_many(draw: Draw) -> str:
    """More than a hundred pairs, most of them as often as the others."""
    return " ".join("".join(draw.shuffled("abcdefghijklmnopqrstuvwxyz")) for _ in range(12))


def long_ties(draw: Draw) -> str:
    """Words that begin alike, for tokens that differ only far from their beginnings."""
    stem = draw.walk("abc", draw.between(20, 80))
    return " ".join(stem + end for end in draw.shuffled(("a", "bb", "ca", "é"))[:3])


def heavy(draw: Draw) -> str:
    """Few words, thousands of times."""
    words = [draw.walk("abc", draw.between(2, 4)) + draw.pick((" ", "\n")) for _ in range(3)]
    return "".join(word * draw.pick((draw.between(1000, 1100), draw.between(2050, 2300))) for word in words)


def weighted(draw: Draw) -> str:
    """Few words, some of them often, of two or three letters that run together."""
    return draw.words(draw.pick(ALPHABETS), draw.between(2, 6), draw.between(8, 30))


def overlapping(draw: Draw) -> str:
    """Long words in which pairs overlap and stand side by side."""
    letters = draw.pick(("a", "ab", "aab", "abc"))
    return " ".join(draw.walk(letters, draw.between(8, 40)) for _ in range(draw.between(1, 4)))


def as_it_is(draw: Draw) -> str:
    """What a trainer that normalises, strips or translates would change, several times."""
    return "".join(draw.shuffled([draw.pieces(RAW_TEXT, 3) for _ in range(6)] * 2))


def scripts(draw: Draw) -> str:
    """Words of several scripts, and characters that share bytes."""
    return draw.words([draw.pieces(CLASSES, 1) for _ in range(4)], 5, 12)


def splitting(draw: Draw) -> str:
    """Whatever patterns split differently, several times."""
    parts = [draw.pieces(draw.pick(list(PIECES.values())), draw.between(2, 5)) for _ in range(5)]
    return "".join(draw.pick(parts) for _ in range(12))


def longer(draw: Draw) -> str:
    """More text than a small buffer holds."""
    return draw.words("etaoins", 60, 400, (" ", " ", "\n", ", ", "'s "))


def long_words(draw: Draw) -> str:
    """One or two words of hundreds of letters; some repeat a few of them all along, so that tokens grow long."""
    words = []
    for _ in range(draw.between(1, 2)):
        length = draw.between(300, 900)
        part = draw.walk(draw.pick(("a", "ab", "aab", "-", "01", "é")), draw.pick((1, 3, 5, length)))
        words.append((part * length)[: length // len(part[0].encode("utf-8"))])
    return " ".join(words)


def real(draw: Draw) -> str:
    """Stretches of real text."""
    return real_text(draw, 6, 120)


def train(draw: Draw, corpus: Corpus, merges: tuple[int, int], pattern: str = "gpt2") -> Raw:
    """A corpus, and how many merges are wanted."""
    text, size = corpus(draw), 256 + draw.between(*merges)
    if pattern == "gpt2":
        return {"text": text, "vocab_size": size, "special_tokens": []}
    chosen = special_set(draw) if draw.chance(0.5) else []
    text += strewn(draw, chosen, 12) if chosen else ""
    return {"text": text, "vocab_size": size + len(chosen), "special_tokens": chosen, "pattern": pattern}


def ties(draw: Draw) -> Raw | None:
    """A corpus from which each way to break ties learns something else."""
    given = train(draw, many_ties, (3, 14))
    others = [
        textbook.learn(given["text"], given["vocab_size"], tie_break=tie_break)
        for tie_break in ("lex-smaller", "smaller-ids", "first-seen")
    ]
    return None if textbook.learn(given["text"], given["vocab_size"]) in others else given


def special(draw: Draw, about: str) -> Raw | None:
    """A corpus in which special tokens stand, overlap, and nearly stand."""
    chosen = metacharacters(draw) if about == "metacharacters" else special_set(draw)
    parts = [strewn(draw, chosen, draw.between(2, 5)) for _ in range(4)]
    text = "".join(draw.pick(parts) + draw.pick(("", " ", "  ", "\n")) for _ in range(9))
    if about == "near misses":
        chosen, text = near_misses(draw, 12)
    if about == "space":
        sides = ("a", "b", *SPACE, *CONTRACTIONS)
        text = "".join(draw.pieces(sides, 3) + draw.pick(chosen) for _ in range(9))
    segments = [segment for segment, _ in textbook.cut_special(text, chosen)]
    if about == "overlaps" and segments == in_turn(text, chosen):
        return None
    size = 256 + len(chosen) + draw.between(2, 12)
    return {"text": text, "vocab_size": size, "special_tokens": draw.shuffled(chosen)}


def size(draw: Draw, merges: tuple[int, int], texts: Sequence[str] = ()) -> Raw:
    """As many merges as there are pairs, fewer, more, or none; one of `texts` if there are any."""
    chosen = draw.shuffled(special_set(draw)) if not texts or draw.chance(0.7) else []
    text = strewn(draw, chosen, draw.between(5, 15)) if not texts else draw.pick((*texts, *chosen))
    return {"text": text, "vocab_size": 256 + len(chosen) + draw.between(*merges), "special_tokens": chosen}
