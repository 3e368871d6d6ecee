"""A script that writes the two Unicode tables of the spec, which `bpe_conformance.fixtures.characters` reads.

Usage: `python tests/unicode_tables.py PYTHON3.8`. Python 3.8 has the character data of Unicode
12.1. tiktoken and tokenizers must be installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import regex

from bpe_conformance.fixtures import characters
from bpe_conformance.fixtures.characters import DIFFERENCES, UNICODE_12, is_in_unicode_12

CLASSES = {
    "L": r"\p{L}",
    "N": r"\p{N}",
    "M": r"\p{M}",
    "Lu": r"\p{Lu}",
    "Ll": r"\p{Ll}",
    "Lt": r"\p{Lt}",
    "Lm": r"\p{Lm}",
    "Lo": r"\p{Lo}",
    "white space": r"\s",
}
ENGINES = ("regex", "tiktoken", "tokenizers")
SURROGATES = range(0xD800, 0xE000)
NEW_IN_12_1 = 0x32FF
NONCHARACTERS = frozenset(
    [*range(0xFDD0, 0xFDF0), *(plane * 0x10000 + last for plane in range(17) for last in (0xFFFE, 0xFFFF))]
)


def write_ranges(codes: Iterable[int]) -> str:
    """Return code points as ranges. The inverse of `characters.read_ranges`.

    >>> write_ranges([65, 66, 67, 170])
    '0041-0043 00AA'
    """
    ranges: list[list[int]] = []
    for code in sorted(codes):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return " ".join(f"{first:04X}-{last:04X}" if last > first else f"{first:04X}" for first, last in ranges)


def unicode_12_table(python: str) -> str:
    """Return the text of `unicode12.yaml`.

    Args:
        python: an interpreter whose `unicodedata` is that of Unicode 12.1, such as 3.8.
    """
    script = (
        "import json, sys, unicodedata; print(unicodedata.unidata_version); "
        "print(json.dumps([c for c in range(0x110000) if unicodedata.category(chr(c)) != 'Cn']))"
    )
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    data, _, codes = done.stdout.partition("\n")
    if data != "12.1.0":
        raise ValueError(f"{python} has the character data of Unicode {data}; expected 12.1.0, that of Python 3.8")
    known = {*json.loads(codes), *NONCHARACTERS} - {NEW_IN_12_1}
    head = (
        "# The code points of Unicode 12.0, in hexadecimal: assigned ones, surrogates, private use, noncharacters.\n"
        "# Written by `python tests/unicode_tables.py PYTHON3.8`.\n"
    )
    lines = textwrap.wrap(write_ranges(known), 112, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    return f'{head}unicode: "12.0"\nranges: >-\n' + "".join(f"{line}\n" for line in lines)


def engine_table() -> str:
    """Return the text of `engine_differences.yaml`, from the engines that are installed."""
    versions = "".join(f'  {engine}: "{version(engine)}"\n' for engine in ENGINES)
    head = (
        "# The code points of Unicode 12 that some engines, but not all, put into a class, in hexadecimal.\n"
        "# No case contains them, because correct tokenizers differ on them (SPLIT-UNICODE-2).\n"
        "# Written by `python tests/unicode_tables.py PYTHON3.8`.\n"
    )
    rows = (f'  {name}: "{write_ranges(codes)}"\n' for name, codes in measured_differences().items())
    return f"{head}engines:\n{versions}differences:\n{''.join(rows)}"


def measured_differences() -> dict[str, list[int]]:
    """Return class → the code points of Unicode 12 that some engines, but not all, put into it."""
    text = "".join(chr(code) for code in range(0x110000) if code not in SURROGATES and is_in_unicode_12(chr(code)))
    found = {}
    for name, pattern in CLASSES.items():
        members = [set(regex.findall(pattern, text)), _by_tiktoken(pattern, text), _by_tokenizers(pattern, text)]
        found[name] = sorted(map(ord, set.union(*members) - set.intersection(*members)))
    return found


def _by_tiktoken(pattern: str, text: str) -> set[str]:
    import tiktoken

    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding("classes", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return set(encoding.decode_bytes(encoding.encode_ordinary(text)).decode("utf-8"))


def _by_tokenizers(pattern: str, text: str) -> set[str]:
    import tokenizers

    rest = tokenizers.normalizers.Replace(tokenizers.Regex(pattern), "").normalize_str(text)
    return set(text) - set(rest)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tests/unicode_tables.py PYTHON3.8")
    Path(UNICODE_12).write_text(unicode_12_table(sys.argv[1]), "utf-8")
    characters.unicode_12.cache_clear()
    Path(DIFFERENCES).write_text(engine_table(), "utf-8")
