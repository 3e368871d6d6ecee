"""Writes the seeds of the fuzz targets; `part-*` are incomplete inputs: `python tests/fuzz/make_seeds.py`.

It keeps files named `found-*`, on which a parser once failed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from helpers import sample_reports

from bpe_conformance.packs.files import CASES, MANIFEST, TABLE, ModelSource, Overrides, read_model_files
from bpe_conformance.reference import Tokenizer
from bpe_conformance.reference.formats import gpt2, huggingface, tiktoken
from bpe_conformance.report import document
from bpe_conformance.spec import Case
from fuzz.targets import SEEDS, SPEC

OURS = Tokenizer.train("low lower lowest é é", 262, ["<|e|>"])


def tables() -> Iterator[tuple[str, str, bytes]]:
    """Yield target, name and bytes of one small vocabulary in each format."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = Tokenizer(OURS.vocab, OURS.merges)
        gpt2.write(folder, OURS.vocab, OURS.merges)
        tiktoken.write(folder / "x.tiktoken", OURS.model)
        huggingface.write(folder / "tokenizer.json", OURS.model)
        huggingface.write(folder / "plain.json", plain.model)
        found = {file.name: file.read_bytes() for file in folder.iterdir()}
    vocab, merges = found["vocab.json"], found["merges.txt"]
    yield "gpt2_vocab", "table", vocab
    yield "gpt2_vocab", "small", '{"a": 0, "Ġb": 1, "<a b>": 7}'.encode()
    yield "gpt2_merges", "table", merges
    yield "gpt2_pair", "table", vocab + b"\0" + merges
    yield "tiktoken", "table", found["x.tiktoken"]
    yield "tiktoken", "part-small", b"YQ== 0\nYg== 1\nYWI= 2\n"
    for target in ("huggingface", "table"):
        yield target, "table", found["tokenizer.json"]
        yield target, "plain", found["plain.json"]
    yield "table", "ranks", found["x.tiktoken"]


def texts() -> Iterator[tuple[str, str, bytes]]:
    """Yield the seeds of YAML files, lines and command lines."""
    for file in sorted((SPEC / "cases").glob("*.yaml")):
        yield "spec", file.stem, file.read_bytes()
    for file in sorted((SPEC / "clauses").glob("*.yaml")):
        yield "clauses", file.stem, file.read_bytes()
    yield "yaml", "mixed", b'a: 1\nb: [x, "y\\n", ~, true, 0x1F]\n? c\n: |\n  text\n---\n- {d: -5}\n'
    yield "model", "merges", b'title: x\nmerges: [["a", "b"]]\nextra: [[900, "z"]]\nremove: [7]\nbyte_ids: gpt2\n'
    special = (
        b'special_tokens: [{concat: ["a", {repeat: ["b", 3]}]}, {code_points: [65]}, {file: "01-narrative.txt"}]\n'
    )
    yield "model", "shows", b'title: x\nshows: ["abc", "d"]\npattern: cl100k\n' + special
    yield "sums", "two", b"a" * 64 + b"  x.yaml\n" + b"0" * 64 + b"  y.yaml\n"
    yield "known_failures", "two", b'merge-priority: "not yet"\nstyle-left: |\n  two\n'
    for name, text in (("gpt2", r"'s| ?\p{L}+|\s+(?!\S)|\s+"), ("counted", r"(?:a{2,3}b){4}|[^a-z]\p{Lu}(?i:x)")):
        yield "pattern", name, text.encode()
    for place, words in enumerate(
        (
            ["train", "a", "--vocab-size", "300", "-o", "b", "--special", "<s>=7", "--tie-break", "lex-smaller"],
            ["encode", "gpt2", "-", "--as", "uint16", "--errors", "replace", "--workers", "2"],
            ["list", "--section", "MERGE", "--level", "must"],
            ["matrix", "a:B", "-o", "c", "--jobs", "2"],
        )
    ):
        yield "arguments", str(place), "\0".join(words).encode()
    yield "ids", "text", b"\x0097 98 255\n"
    yield "ids", "jsonl", b'\x01[97, 98]\n"a\\u00e9"\n'
    yield "ids", "uint16", b"\x02a\0b\0"
    yield "ids", "uint32", b"\x03a\0\0\0"


def documents() -> Iterator[tuple[str, str, bytes]]:
    """Yield a pack and a report."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "x.tiktoken")
        ranks = {token: index for index, token in OURS.vocab.items() if token != b"<|e|>"}
        file.write_text("".join(f"{base64.b64encode(token).decode()} {index}\n" for token, index in ranks.items()))
        source = read_model_files([str(file)], Overrides("x", "gpt2", {"<|e|>": 256}))
    yield "pack", "small", _small_pack(source)
    report = sample_reports.report(cases=3, states=sample_reports.failing(1))
    report["suite"]["hypothesis"] = "6.100.0"
    report |= {"created": "2026-01-01T00:00:00Z", "platform": {"python": "3.11.7", "system": "Linux x86_64"}}
    yield "report", "small", document.text(report).encode()


def _small_pack(source: ModelSource) -> bytes:
    from bpe_conformance.packs.build import Agreement, Pack, build, documents, model_files

    whole = build(source.model, 0)
    ops: dict[str, Case] = {}
    for case in whole.cases:
        ops.setdefault(case.operation.name, case)
    pack = Pack(**{**vars(whole), "cases": list(ops.values())})
    files = documents(source, pack, Agreement({}, {}, []), 0, model_files(source))
    manifest = files[MANIFEST]
    for name in (TABLE, CASES):
        manifest = manifest.replace(hashlib.sha256(files[name]).hexdigest().encode(), f"<{name}>".encode())
    return b"\0".join([manifest, files[TABLE], files[CASES]])


def lines() -> Iterator[tuple[str, str, bytes]]:
    """Yield replies of programs and requests to them."""
    hello = {"protocol": 1, "name": "x", "version": "1", "capabilities": ["encode", "decode", "encode_iterable"]}
    results = [hello, {"model": 1}, {"ids": []}, {"ids": [97]}]
    said = [hello, {"model": 1}, [97, 98], "a", {"vocab": [[97, "61"]], "merges": [["61", "61"]]}, {"stream": 1}]
    said += [{"ids": [1]}, {"ids": []}, {"ids": [2]}]
    results = [json.dumps({"seq": place, "result": value}) for place, value in enumerate(said, start=1)]
    yield "replies", "all", "\n".join(results).encode()
    yield "replies", "part-error", b"\n".join([results[0].encode(), b'{"seq":2,"error":{"type":"E","message":"m"}}'])
    yield "replies", "part-no", b"\n".join([results[0].encode(), b'{"seq":2,"not_claimed":"x"}'])
    table = {"vocab": [[index, bytes([index]).hex()] for index in range(256)], "merges": []}
    asked = [
        {"seq": 2, "op": "load", **table, "special_tokens": None},
        {"seq": 3, "op": "encode", "model": 1, "text": "a"},
    ]
    asked += [{"seq": 4, "op": "decode", "model": 1, "ids": [97]}, {"seq": 5, "op": "stream_open", "model": 1}]
    asked += [{"seq": 6, "op": "stream_feed", "stream": 2, "text": "ab"}, {"seq": 7, "op": "table", "model": 1}]
    asked += [{"seq": 8, "op": "train", "text": "aa", "vocab_size": 257, "special_tokens": []}]
    yield "requests", "all", "\n".join(map(json.dumps, asked)).encode()


def main() -> None:
    for make in (tables, texts, documents, lines):
        for target, name, data in make():
            file = SEEDS / target / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)


if __name__ == "__main__":
    main()
