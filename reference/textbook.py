"""The oracle: the shortest byte-level BPE that is obviously correct. All expected values come from it.

It recounts everything at every step and has no index, heap or cache. It shares no code with the rest of the reference,
which is tested against it. Each convention of the spec is a parameter. `Training` and `Encoding` have a method for each
step; a known bug overrides one of them.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from typing import ClassVar, TypeVar

import regex

from bpe_conformance.fixtures import GPT2_BYTE_ORDER, PATTERNS, Merge, spell, unspell
from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Digits, Pipeline, Punctuation, Split, Step

Word = tuple[bytes, ...]
Words = list[tuple[Word, int]]
"""The distinct pre-tokens of a text in order of first occurrence, with their counts."""
Segments = list[tuple[str, bool]]
"""The parts of a text in order, and whether each is a special token."""
_BYTES = tuple(bytes([byte]) for byte in range(256))
Matches = list[tuple[int, int]]
"""The first index of each match in a text, and the index after its last; a match can be empty."""
Spans = list[tuple[int, int]]
"""The first character of each token, and the one after its last."""
Origin = tuple[int, int] | None  # such characters, or None for an added space
Origins = tuple[Origin, ...]
_compiled = lru_cache(maxsize=None)(regex.compile)


def split(text: str, pattern: str = PATTERNS["gpt2"]) -> list[str]:
    """Return the pre-tokens of `text`, in order; text that the pattern does not match is a pre-token, too.

    >>> split("Let's go  on")
    ['Let', "'s", ' go', ' ', ' on']
    """
    expression = _compiled(pattern)
    if not expression.groups and "".join(found := expression.findall(text)) == text:
        return [piece for piece in found if piece]
    pieces: list[str] = []
    end = 0
    for match in expression.finditer(text):
        if match.group():
            pieces += [text[end : match.start()], match.group()]
            end = match.end()
    return [piece for piece in [*pieces, text[end:]] if piece]


def cut_special(text: str, special_tokens: Iterable[str]) -> Segments:
    """Return the segments of `text` and whether each is a special token: the leftmost match wins, then the longest.

    >>> cut_special("a<|e|>b", ["<|e|>"])
    [('a', False), ('<|e|>', True), ('b', False)]
    """
    longest_first = sorted(filter(None, special_tokens), key=len, reverse=True)
    starts = {token: text.find(token) for token in longest_first}
    segments: Segments = []
    end = 0
    while starts := {token: start for token, start in starts.items() if start >= 0}:
        match = min(starts, key=starts.__getitem__)  # of those with the same start, the first, which is the longest
        segments += [(text[end : starts[match]], False), (match, True)]
        end = starts[match] + len(match)
        starts = {token: start if start >= end else text.find(token, end) for token, start in starts.items()}
    return [(segment, special) for segment, special in [*segments, (text[end:], False)] if segment]


def pieces(text: str, special_tokens: Iterable[str], pattern: str) -> Segments:
    """Return the pre-tokens and special tokens of `text`, in order, and whether each is a special token.

    >>> pieces("a b<|e|>c", ["<|e|>"], PATTERNS["gpt2"])
    [('a', False), (' b', False), ('<|e|>', True), ('c', False)]
    """
    return [
        (piece, special)
        for segment, special in cut_special(text, special_tokens)
        for piece in ([segment] if special else split(segment, pattern))
    ]


def atoms(pre_token: str) -> Word:
    r"""Return the bytes of a pre-token, each as one atom.

    >>> atoms("a€")
    (b'a', b'\xe2', b'\x82', b'\xac')
    """
    return tuple([_BYTES[byte] for byte in pre_token.encode("utf-8")])  # a list, for speed


def count_pairs(words: Iterable[Word]) -> Counter[Merge]:
    """Count adjacent pairs, including overlapping ones, in order of first occurrence.

    >>> count_pairs([(b"a", b"a", b"a")])
    Counter({(b'a', b'a'): 2})
    """
    return Counter(chain.from_iterable(map(pairwise, words)))


def replace(word: Word, pair: Merge) -> Word:
    """Replace `pair` in `word` by its concatenation, left to right, without overlap.

    >>> replace((b"a", b"a", b"a"), (b"a", b"a"))
    (b'aa', b'a')
    """
    left, right = pair
    out: list[bytes] = []
    for token in word:
        if token == right and out and out[-1] == left:
            out[-1] = left + right
        else:
            out.append(token)
    return tuple(out)


def choose(counts: Mapping[Merge, int], tie_break: str, ids: Mapping[bytes, int]) -> Merge:
    """Return the pair with the highest count; `tie_break` decides between equal counts (TRAIN-TIE-1)."""
    most = max(counts.values())
    tied = [pair for pair, count in counts.items() if count == most]
    if tie_break == "lex-greater":
        return max(tied)
    if tie_break == "lex-smaller":
        return min(tied)
    if tie_break == "smaller-ids":
        return min(tied, key=lambda pair: (ids[pair[0]], ids[pair[1]]))
    if tie_break == "first-seen":
        return tied[0]
    raise ValueError(f"unknown tie_break {tie_break!r}")


def corpus(text: str, special_tokens: Iterable[str], pattern: str) -> list[Word]:
    """Return every pre-token of `text` as atoms, in text order. Special tokens are boundaries and are left out."""
    return [atoms(piece) for piece, special in pieces(text, special_tokens, pattern) if not special]


BYTES = {
    order: [bytes([byte]) for byte in values] for order, values in (("raw", range(256)), ("gpt2", GPT2_BYTE_ORDER))
}
"""The 256 bytes in the order of their ids: by value (raw), or in GPT-2's order (gpt2)."""


def byte_ids(byte_order: str) -> dict[bytes, int]:
    """Return the ids of the 256 bytes."""
    return dict(zip(BYTES[byte_order], range(256), strict=True))


def learn(
    text: str, vocab_size: int, special_tokens: Sequence[str] = (), pattern: str = PATTERNS["gpt2"], **conventions: str
) -> list[Merge]:
    """Return the merges that training records, in order, by the `conventions` of `Training`.

    `vocab_size` is the number of bytes (256), distinct special tokens and merges together; there are fewer merges if
    pairs run out. It is a ValueError if there is no room for the bytes and special tokens.
    """
    return Training(**conventions).run(text, vocab_size, special_tokens, pattern)


@dataclass
class Training:
    """The steps of `learn`."""

    tie_break: str = "lex-greater"  # which of the most frequent pairs wins (TRAIN-TIE-1)
    byte_order: str = "raw"  # raw or gpt2; only smaller-ids uses it
    train_special: str = "boundary"
    """boundary if special tokens are cut out of the text before it is split, or text if they are ordinary text. A merge
    that creates one then adds no entry (TRAIN-SPECIAL-1)."""

    def run(self, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str) -> list[Merge]:
        self.special = list(dict.fromkeys(special_tokens))
        merge_count = self.merge_count(vocab_size, self.special)
        return self.learn(self.words(text, self.special, pattern), merge_count)

    def merge_count(self, vocab_size: int, special: list[str]) -> int:
        if vocab_size < 256 + len(special):
            raise ValueError(f"vocab_size is {vocab_size}; 256 bytes and {len(special)} special tokens need more")
        return vocab_size - 256 - len(special)

    def words(self, text: str, special: list[str], pattern: str) -> Words:
        counts = Counter(word for segment in self.cut(text, special) for word in self.split(segment, pattern))
        return [(self.atoms(word), count) for word, count in counts.items()]

    def cut(self, text: str, special: list[str]) -> list[str]:
        boundaries = special if self.train_special == "boundary" else ()
        return [segment for segment, is_special in cut_special(text, boundaries) if not is_special]

    def split(self, segment: str, pattern: str) -> list[str]:
        return split(segment, pattern)

    def atoms(self, pre_token: str) -> Word:
        return atoms(pre_token)

    def learn(self, words: Words, merge_count: int) -> list[Merge]:
        """Count, choose, replace, and repeat."""
        special = {token.encode("utf-8"): index - len(self.special) for index, token in enumerate(self.special)}
        without_entry = special if self.train_special == "text" else {}  # a merge can create them
        ids = special | byte_ids(self.byte_order)
        merges: list[Merge] = []
        while merge_count > 0:
            counts = self.count(words)
            if self.ends(counts):
                break
            pair = self.choose(counts, ids)
            words = [(self.replace(word, pair), count) for word, count in words]
            ids.setdefault(pair[0] + pair[1], len(ids))
            merges.append(pair)
            merge_count -= pair[0] + pair[1] not in without_entry
        return merges

    def count(self, words: Words) -> dict[Merge, int]:
        counts: dict[Merge, int] = {}
        for word, count in words:
            for pair in pairwise(word):
                counts[pair] = counts.get(pair, 0) + count
        return counts

    def ends(self, counts: Mapping[Merge, int]) -> bool:
        return not counts

    def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        return choose(counts, self.tie_break, ids)

    def replace(self, word: Word, pair: Merge) -> Word:
        return replace(word, pair) if pair[0] in word and pair[1] in word else word


def build_vocab(
    merges: Sequence[Merge],
    special_tokens: Sequence[str] = (),
    byte_order: str = "raw",
    id_layout: str = "bytes-specials-merges",
) -> dict[int, bytes]:
    """Return the vocabulary, id → bytes, numbered from 0 in the order of `id_layout` (TRAIN-IDS-2)."""
    specials = [token.encode("utf-8") for token in dict.fromkeys(special_tokens)]
    merged = [left + right for left, right in merges if left + right not in specials]
    groups = {"bytes": BYTES[byte_order], "specials": specials, "merges": merged}
    return dict(enumerate(token for group in id_layout.split("-") for token in groups[group]))


def merge_by_pair(word: Word, ranks: Mapping[Merge, int]) -> Word:
    """Merge the adjacent pair of lowest rank, the leftmost on a tie, until no pair has a rank (MERGE-ORDER-1).

    >>> merge_by_pair((b"a", b"b", b"c"), {(b"b", b"c"): 0, (b"a", b"b"): 1})
    (b'a', b'bc')
    """
    return _merge(word, ranks.get)


def merge_by_bytes(word: Word, ranks: Mapping[bytes, int]) -> Word:
    """Merge by the id of each pair's concatenation. A pre-token that is itself a token stays whole (MERGE-LOOKUP-1)."""
    whole = b"".join(word)
    if whole in ranks:
        return (whole,)
    return _merge(word, lambda pair: ranks.get(pair[0] + pair[1]))


def _merge(word: Word, rank_of: Callable[[Merge], int | None]) -> Word:
    while ranked := [(rank, i) for i, pair in enumerate(pairwise(word)) if (rank := rank_of(pair)) is not None]:
        index = min(ranked)[1]
        word = (*word[:index], word[index] + word[index + 1], *word[index + 2 :])
    return word


Cut = TypeVar("Cut", str, Origins)


def find_matches(text: str, expression: str) -> Matches:
    """Return the matches of an expression of a `Split`; one that is empty and right after another does not count.

    >>> find_matches("abab", "(?=b)"), find_matches("ba", "|a")
    ([(1, 1), (3, 3)], [(0, 0), (1, 1), (2, 2)])
    """
    matches: Matches = []
    pattern, index, last = _compiled(expression, regex.V1), 0, -1
    while index <= len(text) and (match := pattern.search(text, index)) is not None:
        if match.start() == match.end() == last:
            index += 1
        else:
            matches.append(match.span())
            index = last = match.end()
    return matches


def cut_at(text: Cut, matches: Matches, behavior: str, invert: bool = False) -> list[Cut]:
    """Cut a text at matches; `behavior` says what becomes of them, and `invert` swaps them with the text between.

    What belongs to the characters of a text, in a tuple, is cut in the same way.

    >>> [cut_at("a--b-", [(1, 2), (2, 3), (4, 5)], behavior) for behavior in ("Isolated", "Removed", "Contiguous")]
    [['a', '-', '-', 'b', '-'], ['a', 'b'], ['a', '--', 'b', '-']]
    >>> [cut_at("a--b-", [(1, 2), (2, 3), (4, 5)], behavior) for behavior in ("MergedWithPrevious", "MergedWithNext")]
    [['a-', '-', 'b-'], ['a', '-', '-b', '-']]
    """
    parts: list[tuple[Cut, bool]] = []
    end = 0
    for start, stop in matches:
        parts += [(text[end:start], invert)] * (end < start) + [(text[start:stop], not invert)]
        end = stop
    parts += [(text[end:], invert)] * (end < len(text))
    step = -1 if behavior == "MergedWithNext" else 1  # from right to left, a match joins what is after it
    pieces: list[Cut] = []
    was_match: bool | None = None
    for part, is_match in parts[::step]:
        merged = is_match and was_match is False if behavior.startswith("Merged") else is_match == was_match
        if merged and behavior not in ("Isolated", "Removed"):
            first, second = [pieces[-1], part][::step]
            pieces[-1] = first + second
        elif not (is_match and behavior == "Removed"):
            pieces.append(part)
        was_match = is_match
    return [piece for piece in pieces[::step] if piece]


def unfinished(data: bytes) -> int:
    r"""Return how many bytes at the end of `data` may begin a character that later bytes complete.

    >>> unfinished(b"a\xe2\x82"), unfinished(b"a\xe2\x82\xac"), unfinished(b"\xe2a"), unfinished(b"\x80")
    (2, 0, 0, 0)
    """
    for size, byte in enumerate(reversed(data[-3:]), 1):
        if not 0x80 <= byte < 0xC0:  # it begins a character of 1 to 4 bytes
            return size if size <= sum(byte >= lead for lead in (0xC0, 0xE0, 0xF0)) else 0
    return 0


def spans(text: str, tokens: Iterable[bytes]) -> Spans:
    r"""Return the characters to which each token contributes a byte: (start, end), end exclusive.

    >>> spans("é b", [b"\xc3", b"\xa9 ", b"b"])
    [(0, 1), (0, 2), (2, 3)]
    """
    characters = [index for index, char in enumerate(text) for _ in char.encode("utf-8", "surrogatepass")]
    found: Spans = []
    end = 0
    for token in tokens:
        start, end = end, end + len(token)
        covered = characters[start:end] or [len(text)]
        found.append((covered[0], min(covered[-1] + 1, len(text))))
    return found


class Encoding:
    """The steps of encoding and decoding.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
        special_tokens: matched before the text is split; those without an entry get the ids max(ids)+1, +2, ….
        pattern: a regular expression; None means GPT-2's pattern.
        pipeline: the steps before merging, instead of special tokens and a pattern; its bytes need no entries, and
            those without one are dropped.

    Raises:
        ValueError: if a byte, a part of a merge or the result of a merge has no entry, or a special token is empty.
    """

    conventions: ClassVar[Mapping[str, str]] = {}
    digits = r"\p{N}"
    punctuation = r"[\p{P}$+<=>^`|~]"

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
        pipeline: Pipeline | None = None,
    ) -> None:
        self.vocab = dict(vocab)
        self.merges = list(merges)
        self.pattern = PATTERNS["gpt2"] if pattern is None else pattern
        self.pipeline = pipeline
        self.lookup = self.conventions.get("lookup", "pair")
        if pipeline is not None:
            special_tokens = [token.content for token in pipeline.added_tokens]
            self.lookup = "bytes" if self.lookup == "bytes" else pipeline.lookup
        self.special = list(dict.fromkeys(special_tokens or ()))
        given = () if pipeline is None else pipeline.added_tokens
        self.special_ids = {token.content: token.id for token in given if token.id is not None}
        if "" in self.special:
            raise ValueError("a special token is empty")
        known = set(self.vocab.values())
        of_merges = (token for left, right in merges for token in (left, right, left + right))
        needed = [*(_BYTES if pipeline is None else ()), *of_merges]
        if missing := [token for token in needed if token not in known]:
            raise ValueError(f"the vocabulary has no {missing[0]!r}")
        for token in self.special:
            if token not in self.special_ids and token.encode("utf-8") not in known:
                self.vocab[max(self.vocab) + 1] = token.encode("utf-8")
        self.ids = dict(zip(reversed(self.vocab.values()), reversed(self.vocab), strict=True))
        self.ranks = {pair: rank for rank, pair in reversed([*enumerate(self.merges)])}

    @cached_property
    def byte_ranks(self) -> dict[bytes, int]:
        special = {token.encode("utf-8") for token in self.special if token not in self.special_ids}
        return {token: index for token, index in self.ids.items() if token not in special}

    def segments(self, text: str, allowed_special: Collection[str], disallowed_special: Collection[str]) -> Segments:
        allowed = self.allowed(allowed_special)
        disallowed = self.disallowed(disallowed_special, allowed)
        if self.refuses(text, disallowed, allowed):
            token = next((token for token in disallowed if token in text), "")
            raise ValueError(f"the text contains {token!a}, which is disallowed")
        return self.find_special(text, allowed)

    def allowed(self, allowed_special: Collection[str]) -> list[str]:
        return [token for token in self.special if allowed_special == "all" or token in allowed_special]

    def disallowed(self, disallowed_special: Collection[str], allowed: list[str]) -> list[str]:
        if disallowed_special == "all":
            return [token for token in self.special if token not in allowed]
        return list(disallowed_special)

    def refuses(self, text: str, disallowed: list[str], allowed: list[str]) -> bool:
        return any(token in text for token in disallowed)

    def find_special(self, text: str, allowed: list[str]) -> Segments:
        if self.pipeline is None:
            return cut_special(text, allowed)
        chosen = set(allowed)
        return self.find_added([token for token in self.pipeline.added_tokens if token.content in chosen], text)

    def encode_segments(self, segments: Segments) -> list[int]:
        ids: list[int] = []
        for segment, is_special in segments:
            ids += [self.special_id(segment)] if is_special else self.encode_segment(segment)
        return ids

    def special_id(self, token: str) -> int:
        return self.special_ids[token] if token in self.special_ids else self.ids[token.encode("utf-8")]

    def encode_segment(self, segment: str) -> list[int]:
        return [index for pre_token in self.split(segment) for index in self.encode_pre_token(pre_token)]

    def split(self, segment: str) -> list[str]:
        return split(segment, self.pattern) if self.pipeline is None else self.apply_all(self.pipeline.steps, segment)

    def encode_pre_token(self, pre_token: str) -> list[int]:
        return [self.ids[token] for token in self.merge(self.atoms(pre_token))]

    def atoms(self, pre_token: str) -> Word:
        """Return the bytes of a pre-token that have entries, or the pre-token itself if it stays whole."""
        # Of a pipeline, pre-tokens are mapped characters.
        word = atoms(pre_token) if self.pipeline is None else tuple(map(unspell, pre_token))
        return (b"".join(word),) if self.stays_whole(word) else tuple(filter(self.ids.__contains__, word))

    def merge(self, word: Word) -> Word:
        return merge_by_bytes(word, self.byte_ranks) if self.lookup == "bytes" else merge_by_pair(word, self.ranks)

    def stays_whole(self, word: Word) -> bool:
        return self.lookup != "pair" and b"".join(word) in self.byte_ranks

    # The steps of a pipeline

    def find_added(self, tokens: Sequence[AddedToken], text: str) -> Segments:
        """Return the normalized segments of a text, and whether each is an added token (PIPELINE-ORDER-1)."""
        raw, normalized = ([token for token in tokens if token.normalized is kind] for kind in (False, True))
        segments: Segments = []
        for segment, is_added in self.cut_added(text, {token.content: token for token in raw}):
            forms = {self.normalize(token.content): token for token in normalized}
            segments += [(segment, True)] if is_added else self.cut_added(self.normalize(segment), forms)
        return segments

    def normalize(self, text: str) -> str:
        for form in self.pipeline.normalizer if self.pipeline is not None else ():
            text = unicodedata.normalize(form, text)
        return text

    def cut_added(self, text: str, forms: Mapping[str, AddedToken]) -> Segments:
        """Cut a text at added tokens, whose contents replace their matches; `forms` are the texts to search for."""
        return [(content or text[start:end], content != "") for start, end, content in self.locate_added(text, forms)]

    def locate_added(self, text: str, forms: Mapping[str, AddedToken]) -> list[tuple[int, int, str]]:
        """Return where each segment begins and ends, and the content of the added token, or ""."""
        parts: list[tuple[int, int, str]] = []
        end = stop = 0
        for match, is_added in self.search_added(text, forms):
            start, stop = stop, stop + len(match)
            if is_added and not (forms[match].single_word and self.touches_word(text, start, stop)):
                first, last = self.stripped(text, start, stop, forms[match])
                first = min(max(first, end), start)  # a match can begin in white space that the token before took
                parts += [(end, first, ""), (first, last, forms[match].content)]
                end = last
        return [part for part in [*parts, (end, len(text), "")] if part[0] < part[1] or part[2]]

    def search_added(self, text: str, forms: Iterable[str]) -> Segments:
        return cut_special(text, forms)

    def touches_word(self, text: str, start: int, stop: int) -> bool:
        beside = text[max(0, start - 1) : start] + text[stop : stop + 1]
        return bool(find_matches(beside, r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]"))

    def stripped(self, text: str, start: int, stop: int, token: AddedToken) -> tuple[int, int]:
        """Return where a match begins and ends with the white space that the token takes."""
        while token.lstrip and find_matches(text[:start][-1:], r"\s"):
            start -= 1
        while token.rstrip and find_matches(text[stop : stop + 1], r"\s"):
            stop += 1
        return start, stop

    def apply_all(self, steps: Iterable[Step], segment: str) -> list[str]:
        pieces = [segment]
        for step in steps:
            pieces = [part for piece in pieces for part in self.apply(step, piece)]
        return pieces

    def apply(self, step: Step, piece: str) -> list[str]:
        if isinstance(step, ByteLevel):
            return [spell(part.encode("utf-8")) for part in self.parts(step, piece)]
        return self.cut_at(piece, *self.matches(step, piece))

    def parts(self, step: ByteLevel, piece: str) -> list[str]:
        text = " " + piece if step.prefix_space and not piece.startswith(" ") else piece
        return split(text) if step.split else [text]

    def matches(self, step: Split | Digits | Punctuation, piece: str) -> tuple[Matches, str, bool]:
        """Return the matches of a step, its behavior, and whether it inverts them."""
        match step:
            case Split(expression, behavior, invert):
                return find_matches(piece, expression), behavior, invert
            case Digits(individual):
                return find_matches(piece, self.digits), "Isolated" if individual else "Contiguous", False
            case Punctuation(behavior):
                return find_matches(piece, self.punctuation), behavior, False

    def cut_at(self, piece: Cut, matches: Matches, behavior: str, invert: bool = False) -> list[Cut]:
        return cut_at(piece, matches, behavior, invert)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Return the concatenated bytes of `ids`; a KeyError if one is unknown."""
        return b"".join([self.vocab[index] for index in ids])

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of `ids`: their bytes as UTF-8, with U+FFFD for each maximal subpart that is not UTF-8."""
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield the text of `ids` in parts. At most three bytes wait for the rest of their character."""
        held = b""
        for index in ids:
            held += self.vocab[index]
            ready = self.ready_bytes(held)
            yield self.delta(held[:ready])
            held = held[ready:]
        yield self.last_delta(held)

    def ready_bytes(self, held: bytes) -> int:
        return len(held) - unfinished(held)

    def delta(self, data: bytes) -> str:
        return data.decode("utf-8", errors="replace")

    def last_delta(self, held: bytes) -> str:
        return self.delta(held)

    # Offsets

    def spans(self, text: str, ids: Sequence[int]) -> Spans:
        """Return, for each token, from the first to the last character that its bytes come from."""
        if self.pipeline is None:
            return spans(text, [self.vocab[index] for index in ids])
        found: Spans = []
        for sources in self.origins(text):
            known = [source for source in sources if source]
            start = found[-1][0] if found else 0  # of the token before: the next one can come from the same character
            found.append((known[0][0], known[-1][1]) if known else (start, start))
        return found

    def origins(self, text: str) -> list[list[Origin]]:
        """Return, for each token, the characters that each of its bytes comes from, or None for an added space."""
        tokens = () if self.pipeline is None else self.pipeline.added_tokens
        raw, late = ([token for token in tokens if token.normalized is kind] for kind in (False, True))
        forms = {self.normalize(token.content): token for token in late}
        found: list[list[Origin]] = []
        for start, end, content in self.locate_added(text, {token.content: token for token in raw}):
            if content:
                found.append([(start, end)])
                continue
            changed, sources = self.normalize(text[start:end]), self.sources(text[start:end], start)
            for first, last, late_content in self.locate_added(changed, forms):
                if late_content:
                    found.append([(sources[first][0], sources[last - 1][1])])
                else:
                    found += self.origins_of_segment(changed[first:last], sources[first:last])
        return found

    def origins_of_segment(self, segment: str, sources: Spans) -> list[list[Origin]]:
        pieces: list[tuple[str, Origins]] = [(segment, tuple(sources))]
        for step in () if self.pipeline is None else self.pipeline.steps:
            pieces = [one for piece, own in pieces for one in self.trace(step, piece, own)]
        found = []
        for pre_token, own in pieces:
            kept = [source for char, source in zip(pre_token, own, strict=True) if unspell(char) in self.ids]
            for index in self.encode_pre_token(pre_token):
                size = len(self.vocab[index])
                found.append(kept[:size])
                kept = kept[size:]
        return found

    def trace(self, step: Step, piece: str, sources: Origins) -> list[tuple[str, Origins]]:
        """Return the pieces of `apply`, and what each of their characters comes from."""
        if not isinstance(step, ByteLevel):
            matches = self.matches(step, piece)
            return list(zip(self.cut_at(piece, *matches), self.cut_at(sources, *matches), strict=True))
        found, parts = [], self.parts(step, piece)
        left = (None,) * (sum(map(len, parts)) - len(piece)) + sources  # None for an added space
        for part in parts:
            own, left = left[: len(part)], left[len(part) :]
            of_bytes = tuple(source for char, source in zip(part, own, strict=True) for _ in char.encode("utf-8"))
            found.append((spell(part.encode("utf-8")), of_bytes))
        return found

    def sources(self, text: str, start: int) -> Spans:
        """Return, for each character of the normalized text, the characters that it comes from.

        A text is cut between two characters if both parts, normalized, are the normalized text.
        """
        whole = self.normalize(text)
        if whole == text:
            return [(index, index + 1) for index in range(start, start + len(text))]
        found: Spans = []
        begin = 0
        for end in range(1, len(text) + 1):
            if self.normalize(text[:end]) + self.normalize(text[end:]) == whole:
                found += [(start + begin, start + end)] * len(self.normalize(text[begin:end]))
                begin = end
        return found


class Tokenizer(Encoding):
    """The oracle in the shape of the adapter protocol."""

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None) -> Tokenizer:
        """Train on `text` by the conventions of the class (see `learn` and `build_vocab`)."""
        declared = {**DEFAULTS, **cls.conventions}
        expression = PATTERNS["gpt2"] if pattern is None else pattern
        training = Training(declared["tie_break"], declared["byte_order"], declared["train_special"])
        merges = training.run(text, vocab_size, special_tokens, expression)
        vocab = build_vocab(merges, special_tokens, declared["byte_order"], declared["id_layout"])
        return cls(vocab, merges, special_tokens, pattern)

    def encode(
        self, text: str, *, allowed_special: Collection[str] = "all", disallowed_special: Collection[str] = "all"
    ) -> list[int]:
        """Return the ids of `text`; a ValueError if it contains a disallowed string.

        The keywords are "all" or a collection, as in tiktoken (SPECIAL-ALLOWED-1, SPECIAL-DISALLOWED-1).
        """
        return self.encode_segments(self.segments(text, allowed_special, disallowed_special))

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ids of `text`, and for each the characters that it covers: (start, end), end exclusive."""
        ids = self.encode(text)
        return ids, self.spans(text, ids)

    def tokens(self, text: str) -> list[bytes]:
        return [self.vocab[index] for index in self.encode(text)]


def with_conventions(**conventions: str) -> type[Tokenizer]:
    """Return a `Tokenizer` class that follows and declares `conventions`."""
    return type("Tokenizer", (Tokenizer,), {"conventions": conventions, "__doc__": Tokenizer.__doc__})
