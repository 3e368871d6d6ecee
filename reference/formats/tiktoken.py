"""Reads and writes tiktoken's rank files: a line `base64(token) rank` for each ordinary token, and no merges.

Source: openai/tiktoken `tiktoken/load.py`, `load_tiktoken_bpe`. The ranks imply the merges: merging the bytes of a
token with lower ranks only yields its two parts.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from heapq import heappop, heappush

from bpe_conformance.fixtures import Merge, Model
from bpe_conformance.fixtures.files import AnyPath, write_text
from bpe_conformance.fixtures.one_line import shortened

from . import read_lines
from .gpt2 import read_id


def read_ranks(path: AnyPath) -> dict[bytes, int]:
    """Read token → rank; neither may be repeated."""
    ranks: dict[bytes, int] = {}
    taken: set[int] = set()
    for number, line in enumerate(read_lines(path), start=1):
        if not line:
            continue
        where = f"{path}:{number}"
        parts = line.split(" ")
        if len(parts) != 2 or not (parts[1].isascii() and parts[1].isdigit()):
            raise ValueError(f"{where}: {shortened(line)} is not base64, a space and a rank")
        token, rank = read_token(parts[0], where), read_id(int(parts[1][:20]), f"{where}: the rank")
        if not token or token in ranks or rank in taken:
            what = f"the token {shortened(token)} is empty, or it or the rank {rank} is a duplicate"
            raise ValueError(f"{where}: {what}")
        ranks[token] = rank
        taken.add(rank)
    return ranks


def read_token(written: str, where: str) -> bytes:
    """Return the bytes of canonical base64, the form that every encoder writes; readers differ on other forms."""
    try:
        token = base64.b64decode(written, validate=True)
    except ValueError as error:
        raise ValueError(f"{where}: {shortened(written)} is not base64: {error}") from None
    if base64.b64encode(token).decode("ascii") != written:
        raise ValueError(f"{where}: {shortened(written)} is not canonical base64: bits are left over")
    return token


def check_bytes(ranks: Mapping[bytes, int], where: str) -> None:
    if missing := [byte for byte in range(256) if bytes([byte]) not in ranks]:
        raise ValueError(f"{where}: there is no rank for the byte {bytes(missing[:1])!r}; ranks need all 256")


def merges_of_ranks(ranks: Mapping[bytes, int]) -> list[Merge]:
    """Return the merges that ranks imply, in order of rank.

    A token that lower ranks do not reduce to two parts is never the result of a merge and is left out. tiktoken returns
    its id only for a pre-token that equals it.

    >>> ranks = {bytes([byte]): byte for byte in range(256)}
    >>> merges_of_ranks(ranks | {b"bc": 256, b"abc": 257})
    [(b'b', b'c'), (b'a', b'bc')]
    """
    merges: list[Merge] = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        if len(token) > 1:
            parts = _parts(token, ranks, rank)
            if len(parts) == 2:
                merges.append((parts[0], parts[1]))
    return merges


def _parts(token: bytes, ranks: Mapping[bytes, int], limit: int) -> list[bytes]:
    """Merge the bytes of a token by ranks below `limit`, with a heap of (rank, start, end) of neighbours."""
    size = len(token)
    # A linked list of the starts of parts.
    following = [*range(1, size + 1), size]
    preceding = list(range(-1, size))
    heap: list[tuple[int, int, int]] = []

    def look(start: int) -> None:
        end = following[following[start]]
        rank = ranks.get(token[start:end], limit)
        if following[start] < size and rank < limit:
            heappush(heap, (rank, start, end))

    for start in range(size):
        look(start)
    while heap:
        _, start, end = heappop(heap)
        middle = following[start]
        if following[middle] != end or preceding[middle] != start:
            continue  # one of the two parts has been merged since
        following[start], preceding[end], preceding[middle] = end, start, middle
        look(start)
        if start:
            look(preceding[start])
    starts = [start for start in range(size) if preceding[start] < start]
    return [token[start : following[start]] for start in starts]


def read(path: AnyPath, special_tokens: Mapping[str, int] | None = None, pattern: str = "gpt2") -> Model:
    """Read a model; the file has neither its special tokens, text → id, nor its pattern."""
    ranks = read_ranks(path)
    vocab = {rank: token for token, rank in ranks.items()}
    for text, index in (special_tokens or {}).items():
        if vocab.get(index, text.encode("utf-8")) != text.encode("utf-8"):
            raise ValueError(f"{path}: the id {index} of {text!a} belongs to {vocab[index]!r}")
        vocab[index] = text.encode("utf-8")
    check_bytes(ranks, str(path))
    return Model(vocab, tuple(merges_of_ranks(ranks)), tuple(special_tokens or ()), pattern)


def ranks_of(model: Model) -> dict[bytes, int]:
    """Return token → rank for the ordinary tokens of `model`, in order of rank.

    Raises:
        ValueError: if the ranks alone do not determine the merges, so that tiktoken would encode differently: ids are
            not in merge order, no merge creates a token, or two ids have the same bytes.
    """
    special = {text.encode("utf-8") for text in model.special_tokens or ()}
    ordinary = {index: token for index, token in sorted(model.vocab.items()) if token not in special}
    ranks = {token: index for index, token in ordinary.items()}
    if len(ranks) != len(ordinary):
        twice = next(token for index, token in ordinary.items() if ranks[token] != index)
        raise ValueError(f"two ids have the bytes {twice!r}; a rank file has one rank for a token")
    if any(bytes([byte]) not in ranks for byte in range(256)):
        raise ValueError("a byte is missing or is a special token; a rank file needs all 256")
    recovered = merges_of_ranks(ranks)
    unbuilt = ranks.keys() - {left + right for left, right in recovered}
    if recovered != list(dict.fromkeys(model.merges)) or any(len(token) > 1 for token in unbuilt):
        raise ValueError("the merges do not follow from the ids, so a rank file cannot represent them")
    return ranks


def write(path: AnyPath, model: Model) -> None:
    """Write the ordinary tokens of `model`, without special tokens."""
    write_text(path, rendered(model))


def rendered(model: Model) -> str:
    ranks = ranks_of(model)
    return "".join(f"{base64.b64encode(token).decode('ascii')} {rank}\n" for token, rank in ranks.items())
