"""Adapters in other languages: the JavaScript server under plain Node, npm adapters over stubs, the Java tokenizer."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from bpe_conformance.adapters import AdapterError, RemoteError, resolve
from bpe_conformance.adapters.bridge import check
from bpe_conformance.adapters.bridge.client import bridge
from bpe_conformance.fixtures.answers import MalformedAnswer
from bpe_conformance.reference.textbook import Tokenizer, build_vocab, learn

LANGUAGES = Path(str(files("bpe_conformance.adapters"))) / "languages"
NODE, JAVA = shutil.which("node"), shutil.which("java")
needs_node = pytest.mark.skipif(NODE is None, reason="needs node")
VOCAB = {byte: bytes([byte]) for byte in range(256)}

# A tokenizer of bytes with every method that the server supports.
WHOLE = """
import { serve } from "PLUMBING";
const bytes = (text) => [...Buffer.from(text, "utf8")];
const make = () => ({
  encode: (text, choice) => {
    console.log("encoding", text.length);
    if (text === "typed") return Uint32Array.from([1, 2]);
    if (text === "big") return Promise.resolve(BigInt64Array.from([3n]));
    if (text === "none") return undefined;
    if (text === "strings") return ["1"];
    if (text === "thrown") throw "a string";
    if (text === "fetched") throw new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } });
    if (choice) return bytes(JSON.stringify(choice));
    return bytes(text);
  },
  encode_batch: (texts) => texts.map(bytes),
  decode: (ids) => Buffer.from(ids).toString("utf8"),
  decode_bytes: (ids) => Uint8Array.from(ids),
  stream: () => ({ feed: bytes, close: () => [33] }),
  table: () => ({ vocab: [[97, "61"]], merges: [] }),
  save: (folder) => console.log(folder),
});
await serve(async () => ({
  name: "whole",
  offers: ["encode", "encode_batch", "decode", "decode_bytes", "encode_iterable", "save", "train", "from_files",
    "allowed_special"],
  conventions: { tie_break: "lex-smaller" }, pattern: "none",
  load: make, train: async () => make(), from_files: make,
}));
"""

# Stubs of the npm packages, with the functions that their adapters use: tokenizers of bytes.
STUBS = {
    "js-tiktoken/lite.js": """
exports.Tiktoken = class {
  constructor(ranks) { this.ranks = ranks; }
  encode(text, allowed) { if (allowed !== "all") throw Error(allowed); return [...Buffer.from(text)]; }
  decode(ids) { return Buffer.from(ids).toString() + this.ranks.bpe_ranks.split("\\n").length; }
};""",
    "js-tiktoken/package.json": '{"name": "js-tiktoken", "version": "0.0.1", "main": "lite.js"}',
    "tiktoken/index.js": """
exports.Tiktoken = class {
  constructor(lines, special, pattern) { this.special = special; }
  encode(text) { return this.special[text] ? [this.special[text]] : Uint32Array.from(Buffer.from(text)); }
  decode(ids) { return Uint8Array.from(ids); }
  free() {}
};
exports.get_encoding = (name) => new exports.Tiktoken("", { whole: name.length });""",
    "tiktoken/package.json": '{"name": "tiktoken", "version": "0.0.2", "main": "index.js"}',
}


def node(*arguments: object, cwd: Path | None = None):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd or Path.cwd())
        return bridge([str(NODE), *map(str, arguments)])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    file = tmp_path_factory.mktemp("languages") / "whole.mjs"
    file.write_text(WHOLE.replace("PLUMBING", (LANGUAGES / "protocol.mjs").as_uri()), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def stubs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stubs")
    for name, text in STUBS.items():
        file = folder / "node_modules" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


@needs_node
def test_javascript_server_announces_methods_of_the_tokenizer(whole, tmp_path):
    adapter = node(whole)
    assert (adapter.conventions, adapter.pattern) == ({"tie_break": "lex-smaller"}, "none")
    assert adapter.capabilities >= {"encode", "train", "from_files", "save", "encode_iterable", "surrogates"}
    tokenizer = adapter(VOCAB, [])
    assert tokenizer.encode("a\u20ac\U0001f98a\ufeff") == list("a\u20ac\U0001f98a\ufeff".encode())
    assert tokenizer.encode("\ud83e\udd8a") == list("\U0001f98a".encode())
    assert tokenizer.encode("a\ud800") == [97, 0xEF, 0xBF, 0xBD]
    assert (tokenizer.encode("typed"), tokenizer.encode("big")) == ([1, 2], [3])
    chosen = tokenizer.encode("a", allowed_special=["<\u20ac>"], disallowed_special="all")
    assert bytes(chosen).decode() == '{"allowed_special":["<\u20ac>"],"disallowed_special":"all"}'
    with pytest.raises(MalformedAnswer, match="encode returned a string in a list of ids; an id is an integer"):
        tokenizer.encode("strings")
    assert tokenizer.encode_batch(["a", ""]) == [[97], []]
    assert tokenizer.decode_bytes([97, 226]) == b"a\xe2"
    assert tokenizer.decode([97, 226]) == "a\ufffd"
    assert list(tokenizer.encode_iterable(["a", "", "b"])) == [97, 98, 33]
    assert (adapter.train("", 256, []).merges, adapter.from_files("a", "b").vocab) == ([], {97: b"a"})
    tokenizer.save(tmp_path)
    for text in ("none", "thrown"):
        with pytest.raises(RemoteError):
            tokenizer.encode(text)
    with pytest.raises(RemoteError, match=r"^TypeError: fetch failed: ECONNREFUSED$"):
        tokenizer.encode("fetched")
    with pytest.raises(RemoteError, match="there is no model 99"):
        adapter.client.request("encode", {"model": 99, "text": "a"})
    assert tokenizer.encode("a") == [97]
    adapter.close()


@needs_node
def test_the_example_speaks_the_protocol(monkeypatch):
    monkeypatch.setattr(check, "LONG", "abc <|e|>" * 20000)  # more ids than can be spread over arguments
    outcomes = list(check.check(f'cmd:"{NODE}" "{LANGUAGES / "example.mjs"}"'))
    assert {outcome.state for outcome in outcomes} == {"ok", "skip"}, [o for o in outcomes if o.lines]


@needs_node
def test_an_npm_adapter_takes_tables_and_names_its_version(stubs):
    adapter = node(LANGUAGES / "js_tiktoken.mjs", cwd=stubs)
    assert (adapter.__name__, adapter.version) == ("js-tiktoken", "0.0.1")
    assert adapter.conventions == {"lookup": "bytes"}
    tokenizer = adapter({**VOCAB, 256: b"ab", 300: b"<|e|>"}, [(b"a", b"b")], ["<|e|>", "<|x|>"])
    assert tokenizer.encode("ab") == [97, 98]
    assert tokenizer.decode([97]) == "a257"  # 256 bytes and ab; special tokens have no ranks
    assert tokenizer.vocab[301] == b"<|x|>"
    with pytest.raises(RemoteError, match="two ids have the same bytes"):
        adapter({**VOCAB, 256: b"a"}, [])
    with pytest.raises(RemoteError, match="not in the order of the merges"):
        adapter({**VOCAB, 256: b"bc", 257: b"ab"}, [(b"a", b"b"), (b"b", b"c")])
    with pytest.raises(RemoteError, match="a special token is empty"):
        adapter(VOCAB, [], [""])
    adapter.close()


@needs_node
def test_npm_adapter_with_a_model_rejects_other_vocabularies(stubs):
    adapter = node(LANGUAGES / "tiktoken_wasm.mjs", "cl100k", cwd=stubs)
    assert (adapter.model, adapter.conventions) == ("cl100k", {})
    tokenizer = adapter()
    assert tokenizer.encode("whole") == [len("cl100k_base")]
    assert tokenizer.decode([0xEF, 0xBB, 0xBF]) == "\ufeff"
    with pytest.raises(RemoteError, match="negative"):
        tokenizer.decode_bytes([-1])
    adapter.close()


@needs_node
def test_missing_package_or_model_gives_one_line_error(tmp_path, stubs):
    with pytest.raises(AdapterError, match=r"Cannot find module .js-tiktoken.*install it in the current") as caught:
        node(LANGUAGES / "js_tiktoken.mjs", cwd=tmp_path)
    assert "\n" not in str(caught.value)
    with pytest.raises(AdapterError, match="there is no model gpt9; there are gpt2, cl100k, o200k"):
        resolve(f'cmd:"{NODE}" "{LANGUAGES / "js_tiktoken.mjs"}" gpt9')


@needs_node
@pytest.mark.parametrize("file", sorted(LANGUAGES.glob("*.mjs")), ids=lambda file: file.name)
def test_every_script_parses(file):
    subprocess.run([str(NODE), "--check", str(file)], check=True, capture_output=True)


@pytest.mark.release
@pytest.mark.skipif(JAVA is None, reason="needs a JDK")
def test_java_tokenizer_passes(tmp_path):
    version = re.search(r'"(\d+)', subprocess.run([str(JAVA), "-version"], capture_output=True, text=True).stderr)
    if version is None or int(version[1]) < 17:
        pytest.skip("needs a JDK, 17 or newer")
    adapter = bridge([str(JAVA), str(LANGUAGES / "Example.java")])
    source = random.Random(3)
    alphabet = ["a", "b", " ", "  ", "\n", "'s", "\u20ac", "\U0001f98a", "\ufeff", "\x85", "7", "<|e|>", "<|e|>x", "\0"]
    for _ in range(12):
        corpus, text = ("".join(source.choices(alphabet, k=70)) for _ in range(2))
        special = source.choice([[], ["<|e|>"], ["<|e|>", "<|e|>x"]])
        here = Tokenizer.train(corpus, 280, special)
        there = adapter.train(corpus, 280, special)
        assert (there.vocab, there.merges) == (here.vocab, here.merges)
        ids = here.encode(text)
        assert there.encode(text) == ids
        assert there.decode(ids[::2]) == here.decode(ids[::2])
        cuts = sorted(source.choices(range(len(text)), k=5))
        chunks = [text[first:last] for first, last in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert list(there.encode_iterable(chunks)) == ids
    noise = source.choices(range(128, 256), k=3000)
    assert there.decode(noise) == bytes(noise).decode("utf-8", "replace")
    there.save(tmp_path)
    again = adapter.from_files(tmp_path / "vocab.json", tmp_path / "merges.txt", special)
    assert (again.vocab, again.merges) == (there.vocab, there.merges)
    for call in (lambda: there.encode("\ud800"), lambda: there.decode([9999]), lambda: adapter({97: b"a"}, [])):
        with pytest.raises(RemoteError):
            call()
    merges = learn("ab" * 9, 258)
    assert adapter(build_vocab(merges), merges, pattern="[ab]").encode("abab") == [97, 98, 97, 98]
    adapter.close()
