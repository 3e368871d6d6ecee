"""The suite's own reader and writer of `vocab.json` + `merges.txt`, in GPT-2's format (clauses FILE-*)."""

from __future__ import annotations

import json
from pathlib import Path

from bpe_conformance.fixtures import Merge, Model, spell, unspell
from bpe_conformance.fixtures.one_line import shortened
from bpe_conformance.fixtures.regular_file import read_regular
from bpe_conformance.fixtures.strict_json import parse_json


def write(
    model: Model,
    folder: Path,
    version_line: bool | str = True,
    newline: str = "lf",
    final_newline: bool = True,
    key_order: str = "ids",
    ascii: bool = True,  # noqa: A002
) -> tuple[Path, Path]:
    """Write `model` into `folder` and return the two paths.

    Args:
        model: what to write.
        folder: where; it exists.
        version_line: whether merges.txt begins with `#version: 0.2`, or the line that it begins with.
        newline: lf or crlf, in merges.txt.
        final_newline: whether merges.txt ends with a line end.
        key_order: ids, reversed or sorted (by spelling).
        ascii: whether vocab.json escapes what is not ASCII.
    """
    special = {token.encode("utf-8") for token in model.special_tokens or ()}
    entries = [
        (token.decode("utf-8") if token in special else spell(token), index)
        for index, token in sorted(model.vocab.items())
    ]
    if key_order == "reversed":
        entries.reverse()
    elif key_order == "sorted":
        entries.sort()
    vocab, merges = folder / "vocab.json", folder / "merges.txt"
    vocab.write_bytes(json.dumps(dict(entries), ensure_ascii=ascii).encode("utf-8"))
    header = "#version: 0.2" if version_line is True else version_line
    lines = [header] if header else []
    lines += [f"{spell(left)} {spell(right)}" for left, right in model.merges]
    end = "\r\n" if newline == "crlf" else "\n"
    merges.write_bytes((end.join(lines) + (end if final_newline else "")).encode("utf-8"))
    return vocab, merges


def read(folder: Path) -> tuple[dict[int, bytes], list[Merge]]:
    """Read what an implementation saved.

    Raises:
        ValueError: one line: which file, and what is wrong with it.
    """
    vocab: dict[int, bytes] = {}
    entries = parse_json(_text(folder / "vocab.json"), "vocab.json")
    if not isinstance(entries, dict):
        raise ValueError("vocab.json: an object of spelled tokens and ids is wanted")
    for spelling, index in entries.items():
        if type(index) is not int:
            raise ValueError(f"vocab.json: the id of {shortened(spelling)} is no integer")
        if index in vocab:
            raise ValueError(f"vocab.json: the id {shortened(index)} stands twice")
        try:
            vocab[index] = _token(spelling)
        except ValueError as error:
            raise ValueError(f"vocab.json: {error}") from None
    merges: list[Merge] = []
    for number, line in enumerate(_text(folder / "merges.txt").replace("\r\n", "\n").split("\n"), 1):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        parts = line.split(" ")
        if len(parts) != 2:
            raise ValueError(f"merges.txt:{number}: {shortened(line)} is not two spellings with a space between")
        try:
            merges.append((unspell(parts[0]), unspell(parts[1])))
        except ValueError as error:
            raise ValueError(f"merges.txt:{number}: {error}") from None
    return vocab, merges


def _text(file: Path) -> str:
    try:
        return read_regular(file).decode("utf-8")
    except FileNotFoundError:
        raise ValueError(f"there is no file {file.name} in the folder that save was given") from None
    except OSError as error:
        raise ValueError(f"{file.name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{file.name} is not UTF-8") from None


def _token(spelling: str) -> bytes:
    try:
        return unspell(spelling)
    except ValueError:
        return spelling.encode("utf-8")
