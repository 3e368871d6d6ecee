"""Reads the pair that CS336 asks for: `vocab: dict[int, bytes]` and `merges: list[tuple[bytes, bytes]]`.

CS336 defines no file format for it, so this module reads the files that solutions write: pickles; JSON with tokens as
Latin-1, in GPT-2's spelling, as hexadecimal digits, base64, Python literals or lists of integers; merges as lines of
two such tokens. It detects the encoding and rejects ambiguous files: there must be a token for each of the 256 bytes,
and for the parts and the result of each merge.

No file can call anything: a pickle that contains anything but plain values is rejected.
"""

from __future__ import annotations

import base64
import io
import pickle
import pickletools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from bpe_conformance.fixtures import Merge, Model
from bpe_conformance.fixtures.characters import has_surrogate
from bpe_conformance.fixtures.files import AnyPath, parse_json, read_regular
from bpe_conformance.fixtures.one_line import shortened

from .files import one_line_errors
from .gpt2 import HEADER, read_id, read_key

_EVERY_BYTE = frozenset(bytes([byte]) for byte in range(256))
_CHAR = r"[ !#-&(-\[\]-~]|\\(?:[\\'tnr]|x[0-9a-f]{2})"
_LITERAL = re.compile(rf"""b'(?:{_CHAR}|")*'|b"(?:{_CHAR}|')*\"""")
"""Bytes as Python's `repr` writes them."""
_NUMBER = re.compile("0|[1-9][0-9]{0,18}")
_KEYS = {"vocab": "vocab", "vocabulary": "vocab", "merges": "merges", "special_tokens": "special_tokens"}


def _literal(text: str) -> bytes:
    if not _LITERAL.fullmatch(text):
        raise ValueError(text)
    return text[2:-1].encode("ascii").decode("unicode_escape").encode("latin-1")


def _hexadecimal(text: str) -> bytes:
    if not re.fullmatch(r"(?:[0-9a-fA-F]{2})+", text):
        raise ValueError(text)
    return bytes.fromhex(text)


SPELLINGS: dict[str, Callable[[str], bytes]] = {
    "Latin-1": lambda text: text.encode("latin-1"),
    "GPT-2's spelling": lambda text: read_key(text, ""),
    "hexadecimal": _hexadecimal,
    "base64": lambda text: base64.b64decode(text, validate=True),
    "Python literals": _literal,
}
"""A way to write a token as a string → the function that reads it, which raises a ValueError for other strings."""


def read(
    path: AnyPath,
    merges_path: AnyPath | None = None,
    special_tokens: Iterable[str] | None = None,
    pattern: str = "gpt2",
) -> Model:
    """Read a model.

    Args:
        path: the file of the vocabulary, or a file with both parts: one after the other, as a tuple, or by name.
        merges_path: the file of the merges, if it is separate.
        special_tokens: None means those that the files have under that name, if any.
        pattern: a name or a regular expression.

    Raises:
        ValueError: with the file, if it is malformed, contains anything but plain values, is ambiguous, or lacks a
            part.
    """
    found: dict[str, tuple[Any, str]] = {}
    for file in (path, merges_path):
        for name, value in _named(_load(file), str(file)) if file is not None else ():
            if name in found:
                raise ValueError(f"{file}: the {name} is already in {found[name][1]}")
            found[name] = value, str(file)
    where = str(path) if merges_path is None else f"{path} and {merges_path}"
    for name, holder in (("vocab", "the vocabulary is"), ("merges", "the merges are")):
        if name not in found:
            raise ValueError(f"{where}: {holder} missing; there is {', '.join(sorted(found)) or 'nothing'}")
    vocab, spelling = _vocab(*found["vocab"])
    merges = _merges(*found["merges"], vocab, spelling)
    if special_tokens is None and "special_tokens" in found:
        special_tokens, where = found["special_tokens"]
        if not isinstance(special_tokens, (list, tuple)) or not all(isinstance(text, str) for text in special_tokens):
            raise ValueError(f"{where}: special_tokens is {type(special_tokens).__name__}, not a list of strings")
        if odd := next(filter(has_surrogate, special_tokens), None):
            raise ValueError(f"{where}: the special token {shortened(odd)} contains a lone surrogate")
    return Model(vocab, merges, None if special_tokens is None else tuple(special_tokens), pattern)


def _named(values: Iterable[Any], where: str) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a file by name: vocab, merges, special_tokens."""
    for value in values:
        if isinstance(value, dict) and value and set(value) <= _KEYS.keys():
            yield from ((_KEYS[key], part) for key, part in value.items())
        elif isinstance(value, dict):
            if {"vocab", "merges"} <= value.keys() and len(value) < 256:
                unknown = next(key for key in value if key not in _KEYS)
                message = "is an unknown key; the known ones are vocab, merges and special_tokens"
                raise ValueError(f"{where}: {shortened(unknown)} {message}")
            yield "vocab", value
        elif isinstance(value, (list, tuple)) and len(value) == 2 and isinstance(value[0], dict):
            yield from zip(("vocab", "merges"), value, strict=True)
        elif isinstance(value, (list, tuple)):
            yield "merges", value
        else:
            raise ValueError(f"{where}: {type(value).__name__} is neither a vocabulary nor merges")


# Files


def _load(path: AnyPath) -> list[Any]:
    """Return the values in a file, in order."""
    with one_line_errors(path):
        data = read_regular(path)
    if data.startswith(b"\x80"):
        try:
            return list(_unpickle_all(data))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: neither a pickle (of protocol 2 or later) nor UTF-8") from None
    if text.lstrip()[:1] in ("{", "["):
        return [parse_json(text, str(path))]
    return [_lines(text, str(path))]


def _lines(text: str, where: str) -> list[list[str]]:
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    first = 1 if lines[0].startswith(HEADER) else 0
    return [_line(line, f"{where}:{number}") for number, line in enumerate(lines[first:], start=first + 1)]


def _line(line: str, where: str) -> list[str]:
    """Return the two tokens of a line: literals, with or without brackets, or the strings around one space."""
    literals = _LITERAL.findall(line)
    if len(literals) == 2 and re.fullmatch(r"\(?, ?\)?|\(? ,?\)?", _LITERAL.sub("", line)):
        return literals
    parts = line.split(" ")
    if len(parts) != 2 or not all(parts):
        raise ValueError(f"{where}: {shortened(line)} is not a merge; expected two tokens and one space")
    return parts


# Pickles


_OPCODES = {ord(opcode.code): opcode.name for opcode in pickletools.opcodes}


_PLAIN = {
    *("PROTO", "FRAME", "STOP", "MARK", "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "GET", "BINGET", "LONG_BINGET"),
    *("INT", "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8"),
    *("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "EMPTY_DICT", "EMPTY_LIST", "LIST", "APPEND", "APPENDS"),
    *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "GLOBAL", "STACK_GLOBAL", "INST"),
}
"""Opcodes that run unchanged. The last three name a class, which `find_class` rejects."""


class _NotPlain(ValueError):
    """A pickle contains something other than plain values."""


class _Functions(dict[int, Callable[[Any], None]]):
    """Opcode → the function of the unpickler for it."""

    def __missing__(self, code: int) -> NoReturn:
        raise _not_plain(f"the opcode {_OPCODES[code]}")


class _PlainUnpickler(pickle._Unpickler):
    """Builds only dicts, lists, tuples, integers, bytes and strings; it resolves no class and calls none.

    It extends the Python unpickler: the C one gives no access to the keys of dicts, and the index of one PUT can make
    it allocate gigabytes.
    """

    stack: list[Any]
    append: Callable[[Any], None]
    pop_mark: Callable[[], list[Any]]

    def find_class(self, module: str, name: str) -> NoReturn:
        """Reject every class and function that a pickle names."""
        raise _not_plain(f"{module}.{name}")

    # These have the names of the functions that they replace.

    def load_dict(self) -> None:
        items = self.pop_mark()
        self.append(_filled({}, items))

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        _filled(self.stack[-1], [key, value])

    def load_setitems(self) -> None:
        items = self.pop_mark()
        _filled(self.stack[-1], items)

    dispatch = _Functions(
        {code: function for code, function in pickle._Unpickler.dispatch.items() if _OPCODES[code] in _PLAIN}
    )
    dispatch.update({ord("d"): load_dict, ord("s"): load_setitem, ord("u"): load_setitems})


def _filled(target: Any, items: Sequence[Any]) -> dict[Any, Any]:
    """Put keys and values into a dict. Reject nested tuples as keys: hashing a deep one would exhaust the stack."""
    if not isinstance(target, dict):
        raise ValueError(f"items for a {type(target).__name__}")
    for key, value in zip(items[::2], items[1::2], strict=True):
        is_flat = isinstance(key, tuple) and all(type(part) is int for part in key)
        if type(key) not in (int, bytes, str) and not is_flat:
            raise ValueError(f"a {type(key).__name__} is a key")
        if key in target:
            raise ValueError(f"the key {shortened(key)} is a duplicate")
        target[key] = value
    return target


def _not_plain(what: str) -> _NotPlain:
    hint = "; write it with pickle.HIGHEST_PROTOCOL" if what == "_codecs.encode" else ""
    return _NotPlain(f"the pickle calls for {shortened(what)[1:-1]}; only plain dicts, lists and bytes are read{hint}")


def _unpickle_all(data: bytes) -> Iterator[Any]:
    """Yield the values of concatenated pickles. Raise a ValueError of one line if one is not plain."""
    stream = io.BytesIO(data)
    while stream.tell() < len(data):
        try:
            yield _PlainUnpickler(stream).load()
        except _NotPlain:
            raise
        except EOFError:
            raise ValueError("not a pickle: it ends too early") from None
        except Exception as error:  # malformed pickles raise errors of many types
            raise ValueError(f"not a pickle: {shortened(str(error) or type(error).__name__)[1:-1]}") from None


# Tables


def _vocab(value: Any, where: str) -> tuple[dict[int, bytes], str]:
    """Return id → bytes, and the spelling of the tokens, "" if they are bytes."""
    if not isinstance(value, dict) or not value:
        raise ValueError(f"{where}: the vocabulary is {type(value).__name__}; expected a dict of ids and tokens")
    by_id = not all(type(index) is int for index in value.values())
    ids = list(value if by_id else value.values())
    tokens = list(value.values() if by_id else value)
    ids = [int(index) if isinstance(index, str) and _NUMBER.fullmatch(index) else index for index in ids]
    for index in ids:
        if type(index) is not int:
            raise ValueError(f"{where}: the vocabulary has {_described(index)} as an id")
        read_id(index, f"{where}: an id of the vocabulary")
    if len(set(ids)) < len(ids):
        raise ValueError(f"{where}: an id of the vocabulary is a duplicate")
    raw, spelling = _bytes_of(tokens, where), ""
    if raw is None:
        raw, spelling = _spelled_vocab(tokens, where)
    if missing := _EVERY_BYTE.difference(raw):
        raise ValueError(f"{where}: the vocabulary has no token for the byte {min(missing)!r}; it needs all 256")
    return dict(zip(ids, raw, strict=True)), spelling


def _bytes_of(tokens: Sequence[Any], where: str) -> list[bytes] | None:
    """Return tokens, each bytes or a list of integers, as bytes; None if all are strings."""
    if all(isinstance(token, str) for token in tokens):
        return None
    raw: list[bytes] = []
    for token in tokens:
        if isinstance(token, (list, tuple)) and all(type(byte) is int and 0 <= byte < 256 for byte in token):
            token = bytes(token)
        if not isinstance(token, bytes):
            raise ValueError(f"{where}: {_described(token)} instead of a token; expected bytes")
        raw.append(token)
    return raw


def _described(value: object) -> str:
    """Describe a value briefly; of a container, which can be deep, only by its type."""
    return f"{type(value).__name__} {shortened(value)}" if isinstance(value, (str, bytes)) else type(value).__name__


def _spelled_vocab(tokens: Sequence[str], where: str) -> tuple[list[bytes], str]:
    fitting = {}
    for name in SPELLINGS:
        found = _read_as(name, tokens)
        if found is not None and len(set(found)) == len(found) and set(found) >= _EVERY_BYTE:
            fitting[name] = found
    if fitting:
        return next(iter(fitting.values())), next(iter(fitting))
    lost = sum("\ufffd" in token for token in tokens)
    why = f"{lost} hold U+FFFD, so their bytes are lost" if lost else "not all 256 bytes have a token, each token once"
    raise ValueError(f"{where}: the tokens are not {', '.join(SPELLINGS)} or lists of integers: {why}")


def _read_as(name: str, tokens: Iterable[str]) -> list[bytes] | None:
    try:
        return [SPELLINGS[name](token) for token in tokens]
    except ValueError:
        return None


def _merges(value: Any, where: str, vocab: Mapping[int, bytes], spelling: str) -> tuple[Merge, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{where}: merges is {type(value).__name__}; expected a list of pairs of tokens")
    parts: list[Any] = []
    for rank, pair in enumerate(value):
        if isinstance(pair, str):
            pair = _line(pair, f"{where}: merge {rank}")
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise ValueError(f"{where}: merge {rank} is not a pair of tokens")
        parts += pair
    known = set(vocab.values())
    if (raw := _bytes_of(parts, where)) is not None or not parts:
        pairs = _pairs(raw or [])
        for rank, (left, right) in enumerate(pairs):
            if not known.issuperset((left, right, left + right)):
                lacks = f"the vocabulary lacks a part or the result of merge {rank}"
                raise ValueError(f"{where}: {lacks}, {shortened(left)} {shortened(right)}")
        return _each_once(pairs, where)
    names = [spelling, *(name for name in SPELLINGS if name != spelling)] if spelling else list(SPELLINGS)
    fitting: dict[str, tuple[Merge, ...]] = {}
    for name in names:
        if (found := _read_as(name, parts)) is not None:
            pairs = _pairs(found)
            if all(known.issuperset((left, right, left + right)) for left, right in pairs):
                fitting[name] = pairs
    if not fitting:
        raise ValueError(f"{where}: no spelling ({', '.join(SPELLINGS)}) makes the merges tokens of the vocabulary")
    if spelling not in fitting and len(set(fitting.values())) > 1:
        raise ValueError(f"{where}: the merges may be {' or '.join(fitting)}; the vocabulary is neither")
    return _each_once(next(iter(fitting.values())), where)


def _each_once(merges: tuple[Merge, ...], where: str) -> tuple[Merge, ...]:
    ranks: dict[Merge, int] = {}
    for rank, merge in enumerate(merges):
        if ranks.setdefault(merge, rank) != rank:
            raise ValueError(f"{where}: merge {rank} is a duplicate of merge {ranks[merge]}")
    return merges


def _pairs(parts: Sequence[bytes]) -> tuple[Merge, ...]:
    return tuple(zip(parts[::2], parts[1::2], strict=True))
