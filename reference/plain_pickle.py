"""Pickles of plain values: dicts, lists, tuples, integers, bytes and strings. Nothing is called, imported or unpickled.

Source: CPython `Lib/pickletools.py`, whose `genops` cuts a pickle into opcodes.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Iterator
from typing import Any

from bpe_conformance.fixtures.one_line import shortened

_VALUES = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG1", "LONG4"),
    *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
}
_EMPTY = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_OF_THE_LAST = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_FROM_A_MARK = {"TUPLE", "LIST", "DICT", "APPENDS", "SETITEMS"}
_PUT, _GET = {"PUT", "BINPUT", "LONG_BINPUT"}, {"GET", "BINGET", "LONG_BINGET"}


class NotPlain(ValueError):
    """A pickle calls for something that is no plain value."""


def load_all(data: bytes) -> Iterator[Any]:
    """Yield the values of pickles that stand one after the other.

    Raises:
        NotPlain: one line: what it calls for.
        ValueError: one line, if it is malformed.
    """
    stream = io.BytesIO(data)
    while stream.tell() < len(data):
        try:
            value = _value(stream, len(data))
        except NotPlain:
            raise
        except Exception as error:  # which one, malformed pickles choose
            raise ValueError(f"no pickle: {shortened(str(error) or type(error).__name__)[1:-1]}") from None
        yield value


def _value(stream: io.BytesIO, size: int) -> Any:
    stack: list[Any] = []
    marks: list[int] = []
    memory: dict[int, Any] = {}
    strings = ["", ""]
    for opcode, argument, _ in pickletools.genops(stream):
        name, number = opcode.name, argument if isinstance(argument, int) else 0
        if name in _VALUES:
            stack.append(argument)
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name in _OF_THE_LAST:
            stack.append(tuple(_taken(stack, len(stack) - _OF_THE_LAST[name])))
        elif name in _FROM_A_MARK:
            _collect(name, stack, _taken(stack, marks.pop()))
        elif name == "APPEND":
            _collect("APPENDS", stack, [stack.pop()])
        elif name == "SETITEM":
            _collect("SETITEMS", stack, _taken(stack, len(stack) - 2))
        elif name == "MARK":
            marks.append(len(stack))
        elif name == "MEMOIZE":
            memory[len(memory)] = stack[-1]
        elif name in _PUT:
            memory[number] = stack[-1]
        elif name in _GET:
            stack.append(memory[number])
        elif name == "PROTO":
            if number > pickle.HIGHEST_PROTOCOL:
                raise ValueError(f"its protocol is {number}")
        elif name == "FRAME":
            if number > size - stream.tell():
                raise ValueError("a frame is cut short")
        elif name != "STOP":
            raise _not_plain(name, argument, strings)
        if isinstance(argument, str):
            strings = [strings[-1], argument]
    (value,) = stack
    return value


def _taken(stack: list[Any], start: int) -> list[Any]:
    """Take what stands from `start` on."""
    if start < 0:
        raise ValueError("the stack is empty")
    taken = stack[start:]
    del stack[start:]
    return taken


def _collect(name: str, stack: list[Any], items: list[Any]) -> None:
    if name in ("TUPLE", "LIST"):
        stack.append(tuple(items) if name == "TUPLE" else items)
        return
    if name == "DICT":
        stack.append({})
    target = stack[-1]
    if not isinstance(target, list if name == "APPENDS" else dict):
        raise ValueError(f"{name} for a {type(target).__name__}")
    if isinstance(target, list):
        target.extend(items)
        return
    for key, value in zip(items[::2], items[1::2], strict=True):
        if not _is_key(key):
            raise ValueError(f"a {type(key).__name__} is a key")
        if key in target:
            raise ValueError(f"the key {shortened(key)} stands twice")
        target[key] = value


def _is_key(key: object) -> bool:
    """Return whether a value may be a key: to hash tuples that are nested deep would end the process."""
    if isinstance(key, tuple):
        return all(type(part) is int for part in key)
    return type(key) in (int, bytes, str)


def _not_plain(name: str, argument: object, strings: list[str]) -> NotPlain:
    named = argument if name == "GLOBAL" else " ".join(strings)
    what = shortened(str(named).strip().replace(" ", "."))[1:-1] if "GLOBAL" in name else f"the opcode {name}"
    hint = "; write it with pickle.HIGHEST_PROTOCOL" if what == "_codecs.encode" else ""
    return NotPlain(f"the pickle calls for {what}; only plain dicts, lists and bytes are read{hint}")
