"""Renders SPEC.md, the chapters of `fixtures/specification.md` with the clauses in them, and docs/superbpe.md."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Merge, Model, read_text, read_token
from bpe_conformance.fixtures.conventions import CONVENTIONS
from bpe_conformance.fixtures.one_line import counted
from bpe_conformance.fixtures.values import spelled
from bpe_conformance.fixtures.yaml_file import SpecError
from bpe_conformance.reference import textbook

from ..answer import Text
from ..operations import token_of
from ..spec import FOLDER, Case, Clause, Spec
from ..terminal import show
from .superbpe import Extension, ExtensionCase

FILE = Path(__file__).parents[1] / "SPEC.md"
CHAPTERS = FOLDER / "specification.md"
EXAMPLES = 2  # how many cases of each clause to show
LONGEST_EXAMPLE = 200  # maximum length of an example in the specification, in characters
MOST_ALIKE = 4  # how many equal tokens in a row are listed; more are counted
HEAD = """\
# Byte-level BPE: the specification

<!-- Rendered from fixtures/specification.md and fixtures/clauses/*.yaml by `bpe-conformance regenerate`.
     Edit those files, not this one. -->

"""
SUPERBPE_HEAD = """\
# SuperBPE: an extension of the specification

<!-- Rendered from fixtures/extensions/superbpe.yaml by `bpe-conformance regenerate`. Edit that file, not this one. -->

This page extends [the specification](../conformance/SPEC.md) and has the same form. The suite tests no adapter against
it, and no verdict depends on it. `bpe_conformance.reference.superbpe.trainer` implements it.
"""
PLACE = re.compile(r"^\{\{([^}]*)\}\}$", re.MULTILINE)
SAMPLES = (  # texts that show how patterns differ
    "I'm sure DON'T don\u2019t",
    "camelCase HTMLParser cafe\u0301",
    "x  y\n\n z \n ",
    "12345 1,234.50 5%",
    "f(x);\n// \u4f60\u597d",
)


def render(spec: Spec) -> str:
    chapters = CHAPTERS.read_text("utf-8")
    named = [name for name in PLACE.findall(chapters) if name.isupper()]
    if sorted(named) != sorted(spec.clauses):
        wrong = {*spec.clauses} ^ {*named} or {name for name in named if named.count(name) > 1}
        raise SpecError(f"{CHAPTERS.name}: each clause must have exactly one placeholder: {', '.join(sorted(wrong))}")
    page = PLACE.sub(lambda match: _part(match[1], spec, chapters), chapters)
    return HEAD + re.sub(r"\n{3,}", "\n\n", page)


def render_superbpe(extension: Extension) -> str:
    section = extension.section
    lines = [SUPERBPE_HEAD, f"## {section.name}. {section.title}\n\n{section.intro.strip()}\n"]
    for clause in section.clauses:
        lines += [f"### {clause.id}\n", f"{clause.statement.strip()}\n", _reason(clause, extension.cases)]
    return "\n".join(lines)


def _part(name: str, spec: Spec, chapters: str) -> str:
    """Return the text that replaces `{{name}}` in the chapters."""
    if name in spec.clauses:
        return _clause(spec.clauses[name], spec)
    if name == "contents":
        titles = re.findall(r"^## (.*)$", chapters, re.MULTILINE)
        return "\n".join(f"- [{title}](#{_anchor(title)})" for title in titles if title != "Contents")
    if name == "conventions":
        return _conventions()
    if name == "reasons":
        return "\n".join(_reason(clause, spec.cases) for clause in spec.clauses.values())
    return _pattern(name.removeprefix("pattern "))


def _anchor(title: str) -> str:
    return "".join(char for char in title.lower() if char.isalnum() or char in " -").replace(" ", "-")


def _conventions() -> str:
    rows = ["| convention | default | others |", "|---|---|---|"]
    for name, (default, *others) in CONVENTIONS.items():
        rows.append(f"| `{name}` | `{default}` | {', '.join(f'`{value}`' for value in others)} |")
    return "\n".join(rows)


def _pattern(name: str) -> str:
    rows = []
    for text in SAMPLES:
        pieces = " ".join(code(quoted(piece)) for piece in textbook.split(text, PATTERNS[name]))
        rows.append(f"| {code(quoted(text))} | {pieces} |")
    shown = [f"```text\n{PATTERNS[name]}\n```"]
    if name not in ("llama3", "none"):  # llama3 is the string of cl100k-2023, none has one pre-token
        shown += ["", "| text | pre-tokens |\n|---|---|", *rows]
    return "\n".join(shown)


def _clause(clause: Clause, spec: Spec) -> str:
    lines = [f'<a id="{clause.id.lower()}"></a>**{clause.id}** {clause.statement.strip()}', ""]
    lines += [f"- {shown}" for shown in _examples(clause, spec)]
    return "\n".join(lines).rstrip() + "\n"


def _examples(clause: Clause, spec: Spec) -> Iterator[str]:
    """Yield the cases that a clause names, or its first short cases."""
    cases = {case.id: case for case in spec.cases if case.clause.id == clause.id}
    if clause.examples:
        yield from (example(cases[name]) for name in clause.examples)
        return
    short = (shown for case in cases.values() if len(shown := example(case)) <= LONGEST_EXAMPLE)
    yield from islice(short, EXAMPLES)


def _reason(clause: Clause, every: Sequence[Case | ExtensionCase]) -> str:
    cases = [case.id for case in every if case.clause.id == clause.id]
    lines = [f"**{clause.id}** ({clause.level}). {clause.rationale.strip()}\n"]
    folded = [f"- {source}" for source in clause.sources]
    folded += [f"- cases: {', '.join(f'`{case}`' for case in cases)}"] if cases else []
    if folded:
        summary = f"Sources, {counted(len(cases), 'case')}" if cases else "Sources"
        lines += [f"<details><summary>{summary}</summary>\n", "\n".join(folded), "\n</details>\n"]
    return "\n".join(lines)


# A case in one line: the call, its arguments, and the result


def example(case: Case) -> str:
    r"""Return a case in one line of Markdown, with its id.

    >>> from bpe_conformance.spec import installed_spec
    >>> next(example(case) for case in installed_spec().cases if case.id == "merge-priority-beats-leftmost")
    "`encode('abc')` with `b+c a+b` → `'a' | 'bc'` (merge-priority-beats-leftmost)"
    """
    with_model = "" if case.model is None else _model(case, case.model)
    style = _style(case)
    call = show.call(case.operation.call(), style)
    if "shows" in _raw_model(case):
        call = call.replace("encode(", "split(", 1)
    return f"{code(call)}{with_model} → {_result(case, style)} ({case.id})"


def _style(case: Case) -> show.Style:
    """Return how values look in the specification: in full, with texts as the case spells them."""
    spellings = dict(spelled(case.raw.get("input")))

    def text(value: str) -> str:
        return quoted(spellings.get(value, value))

    def texts(values: Sequence[str], noun: str = "") -> str:
        if len(values) > MOST_ALIKE and len({*values}) == 1:
            return f"[{text(values[0])}] * {len(values)}"
        return f"[{', '.join(map(text, values))}]"

    def ids(values: Sequence[int], model: Model | None) -> str:
        shown = code(tokens(token_of(index, case.table) or b"" for index in values))
        return f"{shown}, ids {list(values)}" if values and _ids_matter(case) else shown

    return show.Style(
        text=text,
        texts=texts,
        sequence=lambda values: str(list(values)),
        choice=lambda _, value: quoted(value) if isinstance(value, str) else texts(value),
        directory="folder",
        constructor="Tokenizer(vocab, merges)",
        keyword=False,
        ids=ids,
        tokens=lambda values: code(tokens(values)),
        merges=lambda merges: code(_merges(merges) or "no merges"),
        entries=lambda entries: code(", ".join(f"{index} {_token(token)}" for index, token in entries)),
        reasons=False,
    )


def code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}" if text else "nothing"


def tokens(values: Iterable[bytes]) -> str:
    r"""Return tokens in quotes, or in hexadecimal if they are not UTF-8.

    >>> tokens([b"a ", b"\xe2\x82"])
    "'a ' | <e2 82>"
    >>> tokens([b"aa"] * 50)
    "'aa' × 50"
    """
    runs = ((_token(token), len(list(run))) for token, run in groupby(values))
    return " | ".join(f"{shown} × {size}" if size > MOST_ALIKE else " | ".join([shown] * size) for shown, size in runs)


def quoted(value: Any) -> str:
    r"""Return the text of a case in quotes. Characters that cannot be seen, at least not alone, are escaped.

    >>> quoted("e\u0301"), quoted({"repeat": ["ab", 500]})
    ("'e\\u0301'", "'ab' * 500")
    """
    if isinstance(value, str):
        shown = "".join(char if _is_visible(char) else char.encode("unicode_escape").decode() for char in value)
        quote = '"' if "'" in value and '"' not in value else "'"
        inside = "".join(f"\\{char}" if char == quote else char for char in shown)
        return f"{quote}{inside}{quote}"
    if "repeat" in value:
        return f"{quoted(value['repeat'][0])} * {value['repeat'][1]}"
    if "concat" in value:
        return " + ".join(map(quoted, value["concat"]))
    return quoted(read_text(value)) if "code_points" in value else f"the text {value['file']}"


def _is_visible(char: str) -> bool:
    return char == " " or (char not in "\\\ufffd" and char.isprintable() and unicodedata.category(char)[0] != "M")


def _token(value: bytes) -> str:
    try:
        return quoted(value.decode("utf-8"))
    except UnicodeDecodeError:
        return f"<{value.hex(' ')}>"


def _bare(value: bytes) -> str:
    plain = value.isalnum() or value in (b"(", b")", b"<", b">", b"#", b".", b"-")
    return value.decode("ascii") if plain else _token(value)


def _merges(merges: Iterable[Merge]) -> str:
    return " ".join(f"{_bare(left)}+{_bare(right)}" for left, right in merges)


def _model(case: Case, model: Model) -> str:
    """Return the parts of the tokenizer of a case, without the 256 bytes if they are in order."""
    raw = _raw_model(case)
    parts = []
    if model.name:
        parts.append(f"the table of {model.name}")
    elif model.merges and "shows" not in raw:
        parts.append(code(_merges(model.merges)))
    if model.pipeline is not None:
        parts.append(code("; ".join(show.pipeline(model.pipeline))))
    elif model.special_tokens and not model.name:
        parts.append(f"special {code(', '.join(map(quoted, model.special_tokens)))}")
        present = set(model.vocab.values())
        if absent := [text for text in dict.fromkeys(model.special_tokens) if text and text.encode() not in present]:
            parts.append(f"no entry for {code(', '.join(map(quoted, absent)))}")
    elif model.special_tokens == () and model.pipeline is None:
        parts.append("no special tokens, `[]`")
    if model.pattern != "gpt2":
        parts.append(f"pattern {model.pattern}")
    if (ids := raw.get("byte_ids", "raw")) != "raw":
        parts.append(f"byte ids {ids}" if isinstance(ids, str) else f"id of byte b {ids} + b")
    if "merge_ids" in raw:
        parts.append(f"ids of results {', '.join(map(str, raw['merge_ids']))}")
    if "extra" in raw and (_ids_matter(case) or not model.special_tokens):
        entries = ", ".join(f"{index}: {_token(read_token(token))}" for index, token in raw["extra"])
        parts.append(f"entries {code(entries)}")
    if "remove" in raw:
        parts.append(f"no entry {', '.join(map(str, raw['remove']))}")
    if case.operation.call().on == "loaded":
        files = dict(case.operation.arguments()).get("files", ())
        said = ((name, {True: "present", False: "absent"}.get(value, value)) for name, value in files)
        parts += [f"{name.replace('_', ' ')} {value}" for name, value in said]
        return f" after `from_files` of {'; '.join(parts) or 'the bytes'}"
    if len(case.operation.parts()) > 1:
        parts.append("cut in two at any position")
    return f" with {'; '.join(parts)}" if parts else ""


def _raw_model(case: Case) -> Mapping[str, Any]:
    model = case.raw.get("model")
    return model if isinstance(model, dict) else {}


def _result(case: Case, style: show.Style) -> str:
    expected = case.expected
    if not expected.by_convention:
        return ", or ".join(_value(value, style) for value in expected.alternatives)
    keys: dict[str, list[str]] = {}
    for key, (value,) in expected.values.items():
        keys.setdefault(_value(value, style), []).append(key)
    if case.clause.id not in ("TRAIN-TIE-1", "MERGE-LOOKUP-1"):
        return next(iter(keys))
    return "; ".join(f"{', '.join(names)}: {value}" for value, names in keys.items())


def _value(value: Any, style: show.Style) -> str:
    shown = show.expected(value, style)
    return code(shown) if isinstance(value, Text) else shown


def _ids_matter(case: Case) -> bool:
    raw = _raw_model(case)
    return bool({"byte_ids", "merge_ids"} & set(raw)) or {"ID", "ABSENT"} & set(case.clause.id.split("-")) != set()
