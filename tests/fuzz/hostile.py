"""Hostile inputs for parsers: for each target, name → the bytes and part of the expected error."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from fuzz.targets import SEEDS

Tried = tuple[bytes, str]

DIGITS = b"9" * 5000
DEEP = b"[" * 20_000
LAUGHS = b"a: &a [x, x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (new, new, b", ".join([b"*%c" % old] * 9))
    for old, new in zip(b"abcdefgh", b"bcdefghi", strict=True)
)


def seed(target: str, name: str) -> bytes:
    """Return the bytes of a valid seed."""
    return (SEEDS / target / name).read_bytes()


def _vocab(entry: bytes) -> bytes:
    return b'{"a": 0,\n%s}' % entry


GPT2_VOCAB: dict[str, Tried] = {
    "empty": (b"", ":1: not JSON"),
    "nul": (b"\0", ":1: not JSON"),
    "nul-in-a-key": (b'{"a\0": 0}', ":1: not JSON"),
    "cut-short": (b'{"a": 0,\n"b"', ":2: not JSON"),
    "two-values": (b'{"a": 0}\n{}', ":2: not JSON"),
    "not-utf8": (b'{"a":\n"\xff"}', ":2: not UTF-8 at byte 7"),
    "utf16": ('{"a": 0}'.encode("utf-16"), ":1: not UTF-8 at byte 0"),
    "deep": (DEEP, "nested deeper than 64 levels"),
    "deep-objects": (b'{"a":' * 50_000, "nested deeper than 64 levels"),
    "a-little-deep": (b'{"a": ' + b"[" * 65 + b"]" * 65 + b"}", "nested deeper than 64 levels"),
    "a-list": (b"[]", ":1: expected an object of spelled tokens"),
    "key-twice": (_vocab(b'"b": 1, "b": 2'), "duplicate key 'b'"),
    "long-key-twice": (_vocab(b'"%s": 1, "%s": 2' % (b"b" * 100_000, b"b" * 100_000)), "bbb..."),
    "id-twice": (_vocab(b'"b": 0'), "the id 0 belongs to 'a' and to 'b'"),
    "id-negative": (_vocab(b'"b": -1'), "the id of 'b' is -1; ids are 0 to 4294967295"),
    "id-too-large": (_vocab(b'"b": 4294967296'), "the id of 'b' is 4294967296; ids are 0 to"),
    "id-of-4000-digits": (_vocab(b'"b": %s' % DIGITS[:4000]), "the id of 'b' is an integer of 13288 bits"),
    "id-of-5000-digits": (_vocab(b'"b": %s' % DIGITS), "a number has too many digits"),
    "id-true": (_vocab(b'"b": true'), "the id of 'b' is True; expected an integer"),
    "id-float": (_vocab(b'"b": 1.0'), "the id of 'b' is 1.0; expected an integer"),
    "id-1e999": (_vocab(b'"b": 1e999'), "the number '1e999' is too large"),
    "id-nan": (_vocab(b'"b": NaN'), "NaN is not JSON"),
    "id-infinity": (_vocab(b'"b": -Infinity'), "-Infinity is not JSON"),
    "id-string": (_vocab(b'"b": "1"'), "the id of 'b' is '1'; expected an integer"),
    "id-null": (_vocab(b'"b": null'), "the id of 'b' is None; expected an integer"),
    "lone-surrogate": (_vocab(b'"\\ud800": 1'), "'\\ud800' contains a lone surrogate"),
}

GPT2_MERGES: dict[str, Tried] = {
    "one-token": (b"#version: 0.2\nab\n", ":2: 'ab' is not a merge"),
    "three-tokens": (b"a b\na b c\n", ":2: 'a b c' is not a merge"),
    "empty-line": (b"a b\n\nb c\n", ":2: '' is not a merge"),
    "twice": (b"#version: 0.2\na b\nb c\na b\n", ":4: 'a b' is a duplicate of merge 0"),
    "nul": (b"a \0\n", ":1: '\\x00' is not a character of GPT-2's byte map"),
    "bom-inside": (b"a b\n\xef\xbb\xbfb c\n", ":2: '\\ufeff' is not a character of GPT-2's byte map"),
    "carriage-returns": (b"a b\rb c\r", ":1: 'a b\\rb c\\r' is not a merge"),
    "not-utf8": (b"a b\nb \xff\n", ":2: not UTF-8 at byte 6"),
    "long-line": (b"a " * 1_000_000, ":1: 'a a a"),
}


def _pair(merges: bytes) -> bytes:
    return seed("gpt2_pair", "table").partition(b"\0")[0] + b"\0" + merges


GPT2_PAIR: dict[str, Tried] = {
    "unknown-part": (_pair(b"a zz\n"), "merges.txt:1: the vocabulary lacks b'zz', the right part of merge 0"),
    "unknown-result": (
        _pair(b"#version: 0.2\nz q\n"),
        "merges.txt:2: the vocabulary lacks b'zq', the result of merge 0",
    ),
    "no-bytes": (b'{"a": 0}\0', "the vocabulary has no b'\\x00'"),
    "no-vocab": (b"\0a b", "vocab.json:1: not JSON"),
}


def _ranks(line: bytes) -> bytes:
    return b"".join(seed("tiktoken", "table").splitlines(keepends=True)[:256]) + line + b"\n"


TIKTOKEN: dict[str, Tried] = {
    "empty": (b"", "no rank for the byte b'\\x00'"),
    "cut-short": (_ranks(b"YW"), ":257: 'YW' is not base64, a space and a rank"),
    "base64-cut-short": (_ranks(b"YWI 300"), ":257: 'YWI' is not base64: Incorrect padding"),
    "base64-of-another-alphabet": (_ranks(b"-_-_ 300"), ":257: '-_-_' is not base64"),
    "base64-with-bits-left-over": (_ranks(b"YWJ= 300"), ":257: 'YWJ=' is not canonical base64"),
    "base64-in-two": (_ranks(b"YWI=YWI= 300"), ":257: 'YWI=YWI=' is not base64"),
    "base64-not-ascii": (_ranks("YWIé 300".encode()), ":257: 'YWI\\xe9' is not base64"),
    "empty-token": (_ranks(b" 300"), ":257: the token b'' is empty"),
    "rank-missing": (_ranks(b"YWI= "), ":257: 'YWI= ' is not base64, a space and a rank"),
    "rank-negative": (_ranks(b"YWI= -1"), ":257: 'YWI= -1' is not base64, a space and a rank"),
    "rank-float": (_ranks(b"YWI= 1e3"), ":257: 'YWI= 1e3' is not base64, a space and a rank"),
    "rank-of-other-digits": (_ranks("YWI= ３".encode()), "is not base64, a space and a rank"),
    "rank-too-large": (_ranks(b"YWI= 4294967296"), ":257: the rank is 4294967296; ids are 0 to 4294967295"),
    "rank-of-5000-digits": (_ranks(b"YWI= " + DIGITS), ":257: the rank is 99999999999999999999; ids are"),
    "rank-twice": (_ranks(b"YWI= 65"), ":257: the token b'ab' is empty, or it or the rank 65 is a duplicate"),
    "token-twice": (_ranks(b"YQ== 300"), ":257: the token b'a' is empty, or it or the rank 300 is a duplicate"),
    "byte-missing": (b"YQ== 0\n", "there is no rank for the byte b'\\x00'; ranks need all 256"),
    "nul": (_ranks(b"\0"), ":257: '\\x00' is not base64"),
    "not-utf8": (_ranks(b"\xff"), ":257: not UTF-8"),
    "long-line": (_ranks(b"Y" * 4_000_000), ":257: 'YYYY"),
}


def _tokenizer_json(*changes: tuple[str, Any]) -> bytes:
    document = json.loads(seed("huggingface", "table"))
    for place, value in changes:
        *folders, last = place.split(".")
        inner = document
        for folder in folders:
            inner = inner[folder]
        inner[last] = value
    return json.dumps(document).encode()


def _added(**entry: Any) -> bytes:
    return _tokenizer_json(("added_tokens", [{"id": 256, "content": "<|e|>"}, entry]))


def _split(expression: str) -> bytes:
    split = {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}
    steps = [split, {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]
    return _tokenizer_json(("pre_tokenizer", {"type": "Sequence", "pretokenizers": steps}))


HUGGINGFACE: dict[str, Tried] = {
    "empty": (b"", ":1: not JSON"),
    "null": (b"null", "expected an object"),
    "deep": (DEEP, "nested deeper than 64 levels"),
    "model-twice": (b'{"model": {}, "model": {}}', "duplicate key 'model'"),
    "vocab-key-twice": (_tokenizer_json().replace(b'"a": 97', b'"a": 97, "a": 500'), "duplicate key 'a'"),
    "vocab-id-negative": (_tokenizer_json(("model.vocab.a", -1)), "model.vocab: the id of 'a' is -1"),
    "vocab-id-of-a-special-true": (_tokenizer_json(("model.vocab.<|e|>", True)), "the id of '<|e|>' is True"),
    "merges-an-object": (_tokenizer_json(("model.merges", {"a b": 1})), "model.merges: expected an array"),
    "merges-a-number": (_tokenizer_json(("model.merges", 7)), "model.merges: expected an array"),
    "merges-null": (_tokenizer_json(("model.merges", None)), "model.merges: expected an array"),
    "merge-of-unknown-part": (
        _tokenizer_json(("model.merges", ["a zz"])),
        "model.merges[0]: the vocabulary lacks b'zz'",
    ),
    "merge-of-unknown-result": (_tokenizer_json(("model.merges", [["a", "q"]])), "lacks b'aq', the result of merge 0"),
    "merge-of-three": (_tokenizer_json(("model.merges", [["a", "b", "c"]])), "model.merges[0]: 'a b c' is not a merge"),
    "merge-of-numbers": (_tokenizer_json(("model.merges", [[1, 2]])), "model.merges[0] is not a pair of strings"),
    "added-a-number": (_tokenizer_json(("added_tokens", 7)), "added_tokens: expected an array"),
    "added-lone-surrogate": (_added(id=300, content="\ud800"), "added_tokens[1]: '\\ud800' contains a lone surrogate"),
    "added-twice": (_added(id=300, content="<|e|>"), "added_tokens[1]: '<|e|>' is a duplicate"),
    "added-id-taken": (_added(id=97, content="<x>"), "the id of '<x>' is 97, but tokenizers gives it 262"),
    "added-id-true": (_added(id=True, content="<x>"), "added_tokens[1]: the id of '<x>' is True"),
    "added-id-negative": (_added(id=-1, content="<x>"), "added_tokens[1]: the id of '<x>' is -1"),
    "added-id-null": (_added(id=None, content="<x>"), "added_tokens[1]: the id of '<x>' is None"),
    "use-regex-a-word": (
        _tokenizer_json(("pre_tokenizer.use_regex", "no")),
        "pre_tokenizer: 'ByteLevel' is not supported",
    ),
    "dropout-nan": (b'{"model": {"dropout": NaN}}', "NaN is not JSON"),
    "type-long": (_tokenizer_json(("model.type", "x" * 1_000_000)), "xxx...; expected BPE"),
}

TABLE: dict[str, Tried] = {
    "pattern-that-is-none": (_split("(a"), "the pattern '(a' is not a regular expression: missing )"),
    "pattern-deep": (_split("(" * 5000 + ")" * 5000), "is not a regular expression: nested too deeply"),
    "pattern-that-copies": (_split("(?:(?:a{1000}){1000}){1000}"), "its repetitions multiply to more than 100000"),
    "pattern-long": (_split("a" * 100_000), "it has 100000 characters; the maximum is 65536"),
    "pattern-lone-surrogate": (_split("\ud800"), "contains a lone surrogate"),
    "nul": (b"\0\0\0", ":1: '\\x00\\x00\\x00' is not base64"),
    "an-object": (b'{"a": 1}', "a tokenizer.json has `model`, this file does not"),
}

YAML: dict[str, Tried] = {
    "billion-laughs": (LAUGHS, ":1: anchors and aliases are not allowed"),
    "alias-to-itself": (b"a: &a [*a]", ":1: anchors and aliases are not allowed"),
    "alias-to-nothing": (b"x: 1\na: *a", ":2: anchors and aliases are not allowed"),
    "merge-key": (b"a: {b: 1}\n<<: {c: 2}", ":2: '<<' is read as a merge; quote it"),
    "object-tag": (
        b"a: !!python/object/apply:os.system ['true']",
        "the tag tag:yaml.org,2002:python/object/apply:os.system",
    ),
    "tag-with-a-line-end": (b"a: !x%0Ay z", ":1: the tag !x y is not allowed"),
    "binary": (b"a: !!binary YQ==", "the tag tag:yaml.org,2002:binary is not allowed"),
    "deep-flow": (b"[" * 900, ":1: nested deeper than 20 levels"),
    "too-deep-for-the-parser": (DEEP, ":1: "),
    "deep-mappings": (b"{a: " * 10_000, ":1: nested deeper than 20 levels"),
    "deep-block": (b"- " * 3000 + b"x", ":1: nested deeper than 20 levels"),
    "deep-keys": (b"? " * 3000 + b"x", "a key must be a string or an integer"),
    "digits": (b"a: " + DIGITS, "999... is read as a number; quote it"),
    "hexadecimal-digits": (b"a: 0x" + b"F" * 20_000, "FFF... is read as a number; quote it"),
    "beyond-64-bits": (b"a: 0x10000000000000000", "'0x10000000000000000' is read as a number"),
    "infinity": (b"a: .inf", "'.inf' is read as a float"),
    "nan": (b"a: .NaN", "'.NaN' is read as a float"),
    "sexagesimal": (b"a: 1:30:00", "'1:30:00' is read as a number"),
    "octal": (b"a: 0o17\nb: 017", ":2: '017' is read as a number"),
    "key-twice": (b"a: 1\nb: 2\na: 3", ":3: duplicate key 'a'"),
    "key-twice-in-hexadecimal": (b"1: 1\n0x1: 2", ":2: duplicate key 1"),
    "long-key-twice": (b"? " + b"k" * 5000 + b"\n: 1\n? " + b"k" * 5000 + b"\n: 1", "kkk..."),
    "nul": (b"a: 1\nb: \0", ":2: the character U+0000 is not allowed"),
    "escape": (b"a: \x1b[2J", ":1: the character U+001B is not allowed"),
    "bom": (b"\xef\xbb\xbfa: 1", ":1: the character U+FEFF is not allowed"),
    "tab": (b"a:\t1", ":1: the character U+0009 is not allowed"),
    "surrogate": (b'a: "\\ud800"', ":1: "),
    "not-utf8": (b"a: 1\nb: \xff", ":2: not UTF-8 at byte 8"),
    "utf16": ("a: 1".encode("utf-16"), ":1: not UTF-8 at byte 0"),
    "cut-short": (b'a: "b', "found unexpected end of stream"),
    "second-document-malformed": (b"a: 1\n---\n[", ":4: did not find expected node content"),
}


def _spec_case(old: bytes, new: bytes) -> bytes:
    return seed("spec", "encode").replace(old, new, 1)


_TEXT = b'input: {text: "abc"}'
SPEC: dict[str, Tried] = {
    "path-upward": (_spec_case(_TEXT, b"input: {text: {file: ../spec.py}}"), "cases.0.input.text"),
    "path-absolute": (_spec_case(_TEXT, b'input: {text: {file: "/etc/passwd"}}'), "cases.0.input.text"),
    "path-hidden": (_spec_case(_TEXT, b'input: {text: {file: ".git"}}'), "cases.0.input.text"),
    "path-on-windows": (_spec_case(_TEXT, b'input: {text: {file: "..\\\\x"}}'), "cases.0.input.text"),
    "text-of-no-file": (
        _spec_case(_TEXT, b"input: {text: {file: none.txt}}"),
        ":8: 'none.txt' is not the name of a file",
    ),
    "text-too-long": (
        _spec_case(_TEXT, b"input: {text: {concat: [" + b'{repeat: ["a", 1000000]}, ' * 3 + b"]}}"),
        "the text is longer than 1048576 characters",
    ),
    "surrogate-beyond": (_spec_case(_TEXT, b"input: {text: {code_points: [1114112]}}"), "cases.0.input.text"),
    "cut-everywhere": (
        b"clause: STREAM-EQUAL-1\ncases:\n  - {id: a, title: a long text, since: '1.0', op: stream, "
        b"model: {merges: []}, input: {text: {repeat: [a, 100000]}, cut: everywhere}, expect: {tokens: [], ids: []}}\n",
        ":3: a text that is cut everywhere may have at most 4096 characters",
    ),
    "model-path": (_spec_case(b'model: {merges: [["a", "a"]]}', b'model: "../../x"'), "there is no model ../../x"),
}
MODEL: dict[str, Tried] = {
    "file-upward": (b"title: x\nspecial_tokens: [{file: ../spec.py}]", "special_tokens.0"),
    "file-that-is-not": (b"title: x\nspecial_tokens: [{file: none.txt}]", "'none.txt' is not the name of a file"),
    "file-with-a-line-end": (b'title: x\nspecial_tokens: [{file: "none\\n"}]', "'none\\n' is not the name of a file"),
    "concat-bomb": (
        b"title: x\nspecial_tokens: [{concat: [" + b'{repeat: ["a", 1000000]}, ' * 200 + b"]}]",
        "the text is longer than 1048576 characters",
    ),
    "many-long-texts": (
        b"title: x\nspecial_tokens: [" + b'{repeat: ["a", 1000000]}, ' * 200 + b"]",
        "the text is longer than 1048576 characters",
    ),
    "repeat-bomb": (
        b"title: x\nspecial_tokens: [{repeat: [{repeat: [{repeat: [a, 1000000]}, 1000000]}, 1000000]}]",
        "the text is longer than 1048576 characters",
    ),
    "shows-too-much": (b'title: x\nshows: ["' + b"ab" * 50_000 + b'"]', "shows has more than 4096 bytes"),
    "id-too-large": (
        b'title: x\nextra: [[4294967296, "x"]]',
        "the id 4294967296 of b'x' is not in 0 to 4294967295",
    ),
    "id-negative": (b'title: x\nextra: [[-1, "x"]]', "extra.0.0: -1 is less than the minimum of 0"),
    "id-true": (b'title: x\nextra: [[true, "x"]]', "extra.0.0: True is not of type 'integer'"),
    "id-of-a-byte": (b'title: x\nextra: [[97, "x"]]', "the id 97 has two tokens, b'a' and b'x'"),
    "ids-fewer-than-merges": (b'title: x\nmerges: [["a", "b"]]\nmerge_ids: []', "1 merges, but 0 merge_ids"),
    "hexadecimal-odd": (b'title: x\nmerges: [[{hex: "abc"}, "b"]]', "merges.0.0"),
}
SUMS: dict[str, Tried] = {
    "no-sum": (b"abc  x.yaml\n", ":1: 'abc  x.yaml' is not a sha256, two spaces and the name of a file"),
    "not-utf8": (b"a\n\xff", ":2: not UTF-8 at byte 2"),
    "long-line": (b"a" * 1_000_000, ":1: 'aaa"),
}
KNOWN_FAILURES: dict[str, Tried] = {
    "a-list": (b"- a\n", ":1: expected a mapping of id to reason"),
    "unknown": (b"# x\nno-such: y\n", ":2: there is no case or property 'no-such'"),
    "number": (b"7: y\n", ":1: there is no case or property 7"),
    "no-reason": (b"style-left: ~\n", ":1: style-left needs a reason, in quotes"),
    "twice": (b"style-left: a\nstyle-left: b\n", ":2: duplicate key 'style-left'"),
    "bomb": (LAUGHS, ":1: anchors and aliases are not allowed"),
}


def _pack(place: int, change: Callable[[Any], Any]) -> bytes:
    parts = seed("pack", "small").split(b"\0")
    value = json.loads(parts[place])
    change(value)
    parts[place] = json.dumps(value).encode()
    return b"\0".join(parts)


def _case_of(cases: Any, op: str) -> Any:
    return next(case for case in cases["cases"] if case["op"] == op)


PACK: dict[str, Tried] = {
    "no-manifest": (b"", "pack.json:1: not JSON"),
    "manifest-key-twice": (b'{"kind": "pack", "kind": "pack"}', "pack.json: duplicate key 'kind'"),
    "manifest-deep": (DEEP, "pack.json: nested deeper than 64 levels"),
    "manifest-not-utf8": (b"\xff", "pack.json: not UTF-8 at byte 0"),
    "changed": (seed("pack", "small").replace(b"<cases.json>", b"0" * 64), "cases.json: its sha256 is not the one in"),
    "no-digest": (_pack(0, lambda made: made["files"].pop("table.json")), "table.json: its sha256 is not the one in"),
    "another-digest": (
        _pack(0, lambda made: made["files"].update({"table.json": "0" * 64})),
        "table.json: its sha256 is not the one in",
    ),
    "manifest-another-key": (_pack(0, lambda made: made.update(more=1)), "pack.json: document: Additional properties"),
    "pattern-that-is-none": (
        _pack(0, lambda made: made["pattern"].update(regex="(a")),
        "pack.json: the pattern '(a' is no",
    ),
    "table-id-twice": (_pack(1, lambda table: table["vocab"].append([97, "6161"])), "table.json: duplicate id"),
    "table-id-true": (
        _pack(1, lambda table: table["vocab"].append([True, "6161"])),
        "table.json: vocab.262.0: True is not of type 'integer'; make the pack again",
    ),
    "table-no-hexadecimal": (
        _pack(1, lambda table: table["vocab"].append([999, "61 61"])),
        "table.json: vocab.262.1: '61 61' does not match",
    ),
    "table-id-negative": (
        _pack(1, lambda table: table["vocab"].append([-1, "6161"])),
        "table.json: vocab.262.0: -1 is less than the minimum",
    ),
    "table-id-of-33-bits": (
        _pack(1, lambda table: table["vocab"].append([1 << 32, "6161"])),
        "table.json: vocab.262.0: 4294967296 is greater than the maximum",
    ),
    "table-entry-of-three": (_pack(1, lambda table: table["vocab"][0].append(0)), "table.json: vocab.0: "),
    "table-merge-of-one": (_pack(1, lambda table: table["merges"].append(["61"])), "table.json: merges.5: "),
    "table-another-key": (_pack(1, lambda table: table.update(more=1)), "table.json: document: Additional properties"),
    "table-unknown-merge": (
        _pack(1, lambda table: table["merges"].append(["ff", "fe"])),
        "a part or the result of merge",
    ),
    "special-of-another-id": (
        _pack(0, lambda made: made["special_tokens"].update({"<x>": 97})),
        "'<x>' does not have this id in table.json",
    ),
    "case-twice": (_pack(2, lambda made: made["cases"].append(made["cases"][0])), "duplicate id"),
    "case-without-input": (
        _pack(2, lambda made: made["cases"][0].pop("input")),
        "cases.json: cases.0: 'input' is a required property; make the pack again",
    ),
    "case-of-another-op": (
        _pack(2, lambda made: made["cases"][0].update(op="train")),
        "cases.json: cases.0.op: 'train' is not one of",
    ),
    "case-lone-surrogate": (
        _pack(2, lambda made: made["cases"].insert(0, {**made["cases"][0], "id": "\ud800"})),
        "cases.json: cases.0.id: '\\ud800' is not of type 'string'",
    ),
    "case-another-key": (_pack(2, lambda made: made["cases"][0].update(more=1)), "cases.json: cases.0: Additional"),
    "case-input-of-another-op": (
        _pack(2, lambda made: made["cases"][0].update(op="decode")),
        "cases.json: cases.0.input: ",
    ),
    "case-ids-negative": (
        _pack(2, lambda made: made["cases"][0]["expect"]["ids"].append(-1)),
        "cases.json: cases.0.expect.ids",
    ),
    "case-ids-of-text": (
        _pack(2, lambda made: made["cases"][0]["expect"]["ids"].append("a")),
        "cases.json: cases.0.expect.ids",
    ),
    "case-stream-cut-otherwise": (
        _pack(2, lambda made: _case_of(made, "stream")["input"].update(cut="words")),
        ".input.cut: 'words' is not one of",
    ),
    "case-batch-row-with-text": (
        _pack(2, lambda made: _case_of(made, "batch")["expect"]["batch"][0].update(text="")),
        ".expect.batch.0: Additional properties",
    ),
    "case-text-as-number": (
        _pack(2, lambda made: _case_of(made, "decode")["expect"].update(text=1)),
        ".expect.text: 1 is not of type 'string'",
    ),
    "case-of-no-clause": (
        _pack(2, lambda made: made["cases"][0].update(clause="X-1")),
        "names the clause 'X-1', which this version does not have",
    ),
}


def _report(change: Callable[[Any], Any]) -> bytes:
    value = json.loads(seed("report", "small"))
    change(value)
    return json.dumps(value).encode()


REPORT: dict[str, Tried] = {
    "empty": (b"", ":1: not JSON"),
    "deep": (DEEP, "nested deeper than 64 levels"),
    "key-twice": (b'{"format": "x", "format": "y"}', "duplicate key 'format'"),
    "not-utf8": (b'"\xff"', "not UTF-8 at byte 1"),
    "a-number": (b"7", "its format is None; expected"),
    "format-long": (b'{"format": "%s"}' % (b"x" * 1_000_000), "its format is 'xxx"),
    "results-a-number": (_report(lambda made: made.update(results=7)), "results: 7 is not of type 'array'"),
    "seconds-1e999": (
        seed("report", "small").replace(b'"seconds": 0.5', b'"seconds": 1e999', 1),
        "'1e999' is too large",
    ),
}


def _reply(*results: bytes) -> bytes:
    return b"\n".join(b'{"seq": %d, "result": %s}' % (seq, result) for seq, result in enumerate(results, start=1))


REPLIES: dict[str, Tried] = {
    "nothing": (b"", ": got an empty line"),
    "not-utf8": (b"\xff", "replies are ASCII, or UTF-8"),
    "utf16": ('{"seq": 1}'.encode("utf-16-le"), "each line of standard output is one JSON object"),
    "deep": (DEEP, "nested deeper than 64 levels"),
    "key-twice": (b'{"seq": 1, "seq": 1, "result": {}}', "duplicate key 'seq'"),
    "seq-true": (b'{"seq": true, "result": {}}', "a reply repeats the request's seq, which is the number 1, not true"),
    "seq-of-another": (b'{"seq": 2, "result": {}}', "a reply repeats the request's seq, which is the number 1, not 2"),
    "seq-of-5000-digits": (b'{"seq": %s}' % DIGITS, "a number has too many digits"),
    "infinity": (b'{"seq": 1e999}', "the number '1e999' is too large"),
    "nan": (b'{"seq": NaN}', "NaN is not JSON"),
    "neither-result-nor-error": (b'{"seq": 1}', "start: the reply has no result, not_claimed or error"),
    "another-protocol": (_reply(b'{"protocol": 2}'), "the reply does not announce protocol 1"),
    "no-capabilities": (_reply(b'{"protocol": 1}'), "the reply lacks capabilities (a list)"),
}

HOSTILE: Mapping[str, Mapping[str, Tried]] = {
    "gpt2_vocab": GPT2_VOCAB,
    "gpt2_merges": GPT2_MERGES,
    "gpt2_pair": GPT2_PAIR,
    "tiktoken": TIKTOKEN,
    "huggingface": HUGGINGFACE,
    "table": TABLE,
    "yaml": YAML,
    "spec": SPEC,
    "model": MODEL,
    "sums": SUMS,
    "known_failures": KNOWN_FAILURES,
    "pack": PACK,
    "report": REPORT,
    "replies": REPLIES,
}
