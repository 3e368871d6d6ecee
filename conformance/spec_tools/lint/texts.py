"""Rules about the spelling of text in the YAML, and about the characters and sizes of texts."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import regex
import yaml

from bpe_conformance.fixtures import PATTERNS, characters
from bpe_conformance.fixtures.values import escape
from bpe_conformance.fixtures.yaml_file import Document, PathOf
from bpe_conformance.reference import textbook

from ...spec import Case
from .rule import Context, Violation, at, at_case, case_rule, rule

TEXT_PARTS = ("model", "input", "expect")
NAMES = (
    *("pattern", "byte_ids", "cut", "newline", "key_order", "json_style"),
    *("sequence", "error", "file", "stored", "table"),
)
IGNORABLE = regex.compile(r"\p{Default_Ignorable_Code_Point}")
NEVER_IN_UTF8 = {0xC0, 0xC1, *range(0xF5, 0x100)}
MARKERS = (
    *("\u0120", "\u010a", "\u0109", "\u010d", "\u2581", *map(chr, range(0x2420, 0x2425)), "\ufffd", "\ufeff", "\0"),
    *("</w>", "##", "@@"),
)
"""What tokenizers put in place of a space, a line end, the end of a word or an unknown character, or between tokens."""
LONGEST_PRE_TOKEN = 1000
LONGEST_TEXT = 50_000


@rule("text-quoted", "text and tokens are double-quoted in the source")
def _text_quoted(context: Context) -> Iterator[Violation]:
    for document, path, node in _text_nodes(context):
        if node.style != '"':
            yield at(document, path, f"the text {node.value[:40]!a} is not double-quoted; quote it")


@rule("text-escaped", "astral, control, invisible and non-NFC characters of a text are escaped")
def _text_escaped(context: Context) -> Iterator[Violation]:
    for document, path, node in _text_nodes(context):
        source = document.text[node.start_mark.index + 1 : node.end_mark.index - 1]
        fault = _unescaped(source) if node.style == '"' and source else None
        if fault:
            char, why = fault
            yield at(document, path, f"U+{ord(char):04X} {why}; write it as {escape(char)}")


def _unescaped(source: str) -> tuple[str, str] | None:
    """Return the first character of a quoted text that must be escaped, and the reason."""
    if source.isascii() and source.isprintable():
        return None
    for char in source:
        if ord(char) > 0xFFFF:
            return char, "is outside the Basic Multilingual Plane"
        if char != " " and (unicodedata.category(char)[0] in "CZ" or IGNORABLE.match(char)):
            return char, "is invisible"
        if unicodedata.normalize("NFC", char) != char:
            return char, "is not NFC"
    if unicodedata.category(source[0])[0] == "M":
        return source[0], "is a combining mark after the quote"
    for index, char in enumerate(source):
        if unicodedata.normalize("NFC", source[: index + 1]) != source[: index + 1]:
            return char, "composes with the character before it under NFC"
    return None


@case_rule("unicode-12", "input", "a text contains only code points of Unicode 12")
def _unicode_12(case: Case, _: Context) -> str:
    char = next((char for char in _characters(case) if not characters.is_in_unicode_12(char)), None)
    why = "engines with older tables split it differently"
    return f"U+{ord(char):04X} is not in Unicode 12; {why}: use another character" if char is not None else ""


@case_rule(
    "engines-agree",
    "input",
    "a text contains no code point that engines classify differently (fixtures/engine_differences.yaml)",
)
def _engines_agree(case: Case, _: Context) -> str:
    differences = characters.engine_differences()
    if (char := next((char for char in _characters(case) if char in differences), None)) is None:
        return ""
    return f"engines differ on whether U+{ord(char):04X} is in {', '.join(differences[char])}; use another character"


@rule(
    "text-size", f"a must case has pre-tokens of at most {LONGEST_PRE_TOKEN} bytes and texts of at most {LONGEST_TEXT}"
)
def _text_size(context: Context) -> Iterator[Violation]:
    for case in context.spec.cases:
        if case.level != "must":
            continue
        for text in case.operation.texts():
            size = len(text.encode("utf-8", "surrogatepass"))
            if size > LONGEST_TEXT:
                yield at_case(case, "input", f"a text has {size} bytes; the maximum is {LONGEST_TEXT}: shorten it")
            elif size > LONGEST_PRE_TOKEN and (longest := _longest(case, text)) > LONGEST_PRE_TOKEN:
                message = f"a pre-token has {longest} bytes; the maximum is {LONGEST_PRE_TOKEN}: shorten it"
                yield at_case(case, "input", message)


def _longest(case: Case, text: str) -> int:
    special = case.operation.special_tokens(case.model)
    return max((len(word) for word in textbook.corpus(text, special, PATTERNS[case.pattern])), default=0)


def _characters(case: Case) -> list[str]:
    """Return the characters that can change the answer to a case; without merges, no split does."""
    if case.model is not None and not case.model.merges:
        return []
    return sorted(set("".join(case.operation.texts())))


def _text_nodes(context: Context) -> Iterator[tuple[Document, PathOf, Any]]:
    """Yield the YAML scalars that spell a text or a token, in cases and in model files, with their positions."""
    documents = {id(case.document): case.document for case in context.spec.cases if case.document}
    for document in documents.values():
        for path, node in document.nodes.items():
            if len(path) > 3 and path[2] in TEXT_PARTS and _spells_text(path, node):
                yield document, path, node
    for document in context.documents("models"):
        for path, node in document.nodes.items():
            if path != ("title",) and _spells_text(path, node):
                yield document, path, node


def _spells_text(path: PathOf, node: Any) -> bool:
    named = [key for key in path if isinstance(key, str)]
    return isinstance(node, yaml.ScalarNode) and node.tag.endswith(":str") and named[-1] not in NAMES


# All texts together: what real tokenizers lose or confuse is in some training and in some encoding


@rule(
    "inputs-complete",
    "texts that are trained on, and texts that are encoded, have every byte of UTF-8, a character of every category, "
    "markers, equivalent characters and equal numbers",
)
def _inputs_complete(context: Context) -> Iterator[Violation]:
    if not context.clauses:
        return  # cases in addition to those of this package
    texts: dict[str, list[str]] = {"trained on": [], "encoded": []}
    for case in context.spec.cases:
        texts["trained on" if case.model is None else "encoded"] += case.operation.texts()
    for use, used in texts.items():
        for missing in lacking(used):
            yield Violation(context.folder / "cases", 0, f"no text that is {use} has {missing}; add one")


def lacking(texts: Iterable[str]) -> Iterator[str]:
    text = "\n".join(texts)
    chars = set(text)
    if absent := set(range(256)) - NEVER_IN_UTF8 - set(text.encode("utf-8", "replace")):
        yield f"the bytes {bytes(sorted(absent)).hex(' ')}"
    if names := _categories() - set(map(unicodedata.category, chars)):
        yield f"a character of category {', '.join(sorted(names))}"
    if markers := [marker for marker in MARKERS if marker not in text]:
        yield f"the marker {', '.join(map(ascii, markers))}"
    if len({unicodedata.normalize("NFC", char) for char in chars}) == len(chars):
        yield "two characters that are canonically equivalent"
    numbers = {word for word in text.split() if word.isascii() and word.isdigit()}
    if len(set(map(int, numbers))) == len(numbers):
        yield "two spellings of one number, such as 1 and 01"


@cache
def _categories() -> set[str]:
    return {unicodedata.category(char) for run in characters.agreed() for char in run}
