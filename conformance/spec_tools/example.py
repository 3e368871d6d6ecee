"""Formats a golden case in one line, as the specification shows it: the call, its arguments, and the result."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from bpe_conformance.fixtures import Merge, Model, read_text, read_token
from bpe_conformance.fixtures.values import SPELLINGS

from ..answer import Text
from ..operations import Load, token_of
from ..spec import Case
from ..terminal import show

LONGEST = 200
"""Maximum length of an example in the specification, in characters."""
MOST_ALIKE = 4
"""How many equal tokens in a row are listed; more are counted."""


def line(case: Case) -> str:
    r"""Return a case in one line of Markdown, with its id.

    >>> from bpe_conformance.spec import installed_spec
    >>> next(line(case) for case in installed_spec().cases if case.id == "merge-priority-beats-leftmost")
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
    spellings = dict(_spellings(case.raw.get("input")))

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


def _spellings(raw: Any) -> Iterator[tuple[str, Any]]:
    """Yield (text, spelling) for the texts of a case that are not spelled as strings."""
    if isinstance(raw, dict) and len(raw) == 1 and SPELLINGS.issuperset(raw):
        yield read_text(raw), raw
    elif isinstance(raw, dict | list):
        for part in raw.values() if isinstance(raw, dict) else raw:
            yield from _spellings(part)


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
    runs = ((token, len(list(run))) for token, run in groupby(values))
    return " | ".join(
        f"{_token(token)} × {size}" if size > MOST_ALIKE else " | ".join([_token(token)] * size) for token, size in runs
    )


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
    if model.special_tokens and not model.name:
        parts.append(f"special {code(', '.join(map(quoted, model.special_tokens)))}")
        entries = set(model.vocab.values())
        if absent := [text for text in dict.fromkeys(model.special_tokens) if text and text.encode() not in entries]:
            parts.append(f"no entry for {code(', '.join(map(quoted, absent)))}")
    elif model.special_tokens == ():
        parts.append("no special tokens, `[]`")
    if model.pattern != "gpt2":
        parts.append(f"pattern {model.pattern}")
    if raw.get("byte_ids", "raw") != "raw":
        parts.append(
            f"byte ids {raw['byte_ids']}" if isinstance(raw["byte_ids"], str) else f"id of byte b {raw['byte_ids']} + b"
        )
    if "merge_ids" in raw:
        parts.append(f"ids of results {', '.join(map(str, raw['merge_ids']))}")
    if "extra" in raw and (_ids_matter(case) or not model.special_tokens):
        parts.append(
            "entries " + code(", ".join(f"{index}: {_token(read_token(token))}" for index, token in raw["extra"]))
        )
    if "remove" in raw:
        parts.append(f"no entry {', '.join(map(str, raw['remove']))}")
    if isinstance(case.operation, Load):
        parts += [f"{name.replace('_', ' ')} {_said(value)}" for name, value in case.operation.options]
        return f" after `from_files` of {'; '.join(parts) or 'the bytes'}"
    if len(case.operation.parts()) > 1:
        parts.append("cut in two at any position")
    return f" with {'; '.join(parts)}" if parts else ""


def _said(value: Any) -> str:
    return {True: "present", False: "absent"}[value] if isinstance(value, bool) else str(value)


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
