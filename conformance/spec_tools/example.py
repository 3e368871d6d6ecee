"""Formats a golden case in one line, as the specification shows it: the call, its arguments, and the result."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from bpe_conformance.fixtures import Merge, Model, read_text, read_token
from bpe_conformance.fixtures.spec import Case

from ..cases.expectations import choice, chunkings, read_merges

LONGEST = 200
"""Maximum length of an example in the specification, in characters."""
MOST_ALIKE = 4
"""How many equal tokens in a row are listed; more are counted."""


def line(case: Case) -> str:
    r"""Return a case in one line of Markdown, with its id.

    >>> from bpe_conformance.fixtures.spec import installed_spec
    >>> next(line(case) for case in installed_spec().cases if case.id == "merge-priority-beats-leftmost")
    "`encode('abc')` with `b+c a+b` → `'a' | 'bc'` (merge-priority-beats-leftmost)"
    """
    with_model = "" if case.model is None else _model(case, case.model)
    return f"{code(_call(case))}{with_model} → {_result(case, case.expect)} ({case.id})"


def code(text: str) -> str:
    """Return `text` as a span of code in Markdown."""
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


def _list(values: Iterable[Any]) -> str:
    return f"[{', '.join(map(quoted, values))}]"


def _bare(value: bytes) -> str:
    plain = value.isalnum() or value in (b"(", b")", b"<", b">", b"#", b".", b"-")
    return value.decode("ascii") if plain else _token(value)


def _merges(merges: Iterable[Merge]) -> str:
    return " ".join(f"{_bare(left)}+{_bare(right)}" for left, right in merges)


def _call(case: Case) -> str:
    given = case.input
    if case.op == "train":
        asked = given["train"]
        pattern = f", pattern={asked['pattern']!r}" if "pattern" in asked else ""
        return f"train({quoted(asked['text'])}, {asked['vocab_size']}, {_list(asked['special_tokens'])}{pattern})"
    if case.op == "decode":
        ids = ", ".join(map(str, given["ids"]))
        return f"decode(({ids}))" if "sequence" in given else f"decode([{ids}])"
    if case.op == "batch":
        return f"encode_batch({_list(given['texts'])})"
    if "repeat_chunks" in given:
        chunk, times = given["repeat_chunks"]
        return f"encode_iterable([{quoted(chunk)}] * {times})"
    if case.op == "stream":
        ways = chunkings(case)
        return f"encode_iterable({_list(ways[0])})" if len(ways) == 1 else f"encode_iterable({quoted(given['text'])})"
    if case.op in ("save", "construct"):
        return {"save": "save(folder)", "construct": "Tokenizer(vocab, merges)"}[case.op]
    if case.op == "encode_allowed":
        chosen = ", ".join(
            f"{name}={_list(value) if isinstance(value, list) else quoted(value)}"
            for name, value in choice(case).items()
        )
        return f"encode({quoted(given['text'])}, {chosen})"
    return f"{'split' if 'shows' in _raw(case) else 'encode'}({quoted(given['text'])})"


def _model(case: Case, model: Model) -> str:
    """Return the parts of the tokenizer of a case, without the 256 bytes if they are in order."""
    raw = _raw(case)
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
    if case.op == "load":
        parts += [f"{key.replace('_', ' ')} {_said(value)}" for key, value in case.input.items() if key != "text"]
        return f" after `from_files` of {'; '.join(parts) or 'the bytes'}"
    if case.op == "stream" and len(chunkings(case)) > 1:
        parts.append("cut in two at any position")
    return f" with {'; '.join(parts)}" if parts else ""


def _said(value: Any) -> str:
    return {True: "present", False: "absent"}[value] if isinstance(value, bool) else str(value)


def _raw(case: Case) -> Mapping[str, Any]:
    """Return the model in the form of the YAML."""
    assert case.document is not None
    model = case.document.value["cases"][case.path[1]].get("model")
    return model if isinstance(model, dict) else {}


def _result(case: Case, expect: Mapping[str, Any]) -> str:
    if "any_of" in expect:
        return ", or ".join(_result(case, alternative) for alternative in expect["any_of"])
    if "by_convention" in expect:
        keys: dict[str, list[str]] = {}
        for key, one in expect["by_convention"].items():
            keys.setdefault(_result(case, one), []).append(key)
        if case.clause.id not in ("TRAIN-TIE-1", "MERGE-LOOKUP-1"):
            return next(iter(keys))
        return "; ".join(f"{', '.join(names)}: {value}" for value, names in keys.items())
    if "error" in expect:
        return "an error"
    if "merges" in expect:
        ids = f"; ids {code(', '.join(_entries(expect['ids'])))}" if expect.get("ids") else ""
        return code(_merges(read_merges(expect["merges"])) or "no merges") + ids
    if "text" in expect:
        return code(quoted(expect["text"]))
    if "batch" in expect:
        rows = "; ".join(tokens(map(read_token, row["tokens"])) for row in expect["batch"])
        return code(rows) if rows else "an empty list"
    if "with_new_ids" in expect:
        return f"{code(tokens(map(read_token, expect['with_new_ids'])))}, a new id for each without an entry"
    if "tokens" in expect:
        found = [read_token(token) for token in expect["tokens"]]
        ids = f", ids {expect['ids']}" if _ids_matter(case) and found else ""
        return f"{code(tokens(found))}{ids}"
    return {
        "lossless": "tokens whose bytes are the text",
        "lazy": "the first id before all chunks have been read",
        "table": "files from which the same table is read",
        "stored": "the ids of GPT-2",
    }.get(next(iter(expect)), "")


def _ids_matter(case: Case) -> bool:
    raw = _raw(case)
    return bool({"byte_ids", "merge_ids"} & set(raw)) or {"ID", "ABSENT"} & set(case.clause.id.split("-")) != set()


def _entries(pairs: Iterable[Any]) -> Iterator[str]:
    for index, token in pairs:
        yield f"{index} {_token(read_token(token))}"
