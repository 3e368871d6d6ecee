"""`minbpe:` adapts classes like minbpe's, `encoding:` objects, and `tokenizer-json:` classes that read such a file."""

from __future__ import annotations

import gc
import json
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from bpe_conformance.adapters.errors import AdapterError
from bpe_conformance.adapters.loading import resolve
from bpe_conformance.adapters.shapes import tokenizer_json
from bpe_conformance.adapters.shapes.minbpe import MinbpeTokenizer
from bpe_conformance.adapters.shapes.tiktoken_encoding import EncodingTokenizer
from bpe_conformance.cases.judging import judge, skip_reason
from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.spec import installed_spec

SPEC_CASES = {case.id: case for case in installed_spec().cases}

MINBPE = """
import regex


class Basic:
    def __init__(self):
        self.merges, self.vocab = {}, {i: bytes([i]) for i in range(256)}

    def train(self, text, vocab_size, verbose=False):
        parts = list(text.encode("utf-8"))
        for new in range(256, vocab_size):
            pairs = list(zip(parts, parts[1:]))
            best = max(pairs, key=pairs.count)
            self.merges[best], self.vocab[new] = new, self.vocab[best[0]] + self.vocab[best[1]]
            parts = self.join(parts, best)

    def join(self, parts, pair):
        out = []
        for part in parts:
            if out and (out[-1], part) == pair and out[-1] is not None:
                out[-1:] = [self.merges[pair]]
            else:
                out.append(part)
        return out

    def encode(self, text):
        parts = list(text.encode("utf-8"))
        while known := [pair for pair in zip(parts, parts[1:]) if pair in self.merges]:
            parts = self.join(parts, min(known, key=self.merges.get))
        return parts

    def decode(self, ids):
        return b"".join(self.vocab[i] for i in ids).decode("utf-8", errors="replace")


class Whole(Basic):
    pattern = "none"
    conventions = {"tie_break": "lex-greater"}


class Regex(Basic):
    def __init__(self, pattern=None):
        super().__init__()
        self.pattern, self.special_tokens = pattern, {}

    def register_special_tokens(self, special_tokens):
        self.special_tokens = special_tokens
        self.vocab.update({i: token.encode("utf-8") for token, i in special_tokens.items()})

    def encode(self, text, allowed_special="none_raise"):
        assert allowed_special == "all"
        special = "|".join(map(regex.escape, sorted(self.special_tokens, key=len, reverse=True))) or "(?!)"
        ids = []
        for part in regex.split(f"({special})", text):
            if part in self.special_tokens:
                ids.append(self.special_tokens[part])
            else:
                ids += [i for word in regex.findall(self.pattern, part) for i in super(Regex, self).encode(word)]
        return ids


class OfTable:
    def __init__(self, vocab, merges):
        pass

    def encode(self, text):
        return []

    train = decode = encode


class Own(Regex):
    pattern = "none"  # a default, which the adapter replaces


class Computed(Basic):
    def __init__(self):
        pass

    @property
    def vocab(self):
        vocab = {i: bytes([i]) for i in range(256)}
        for (left, right), index in self.merges.items():
            vocab[index] = vocab[left] + vocab[right]
        return vocab

    def train(self, text, vocab_size):
        other = Basic()
        other.train(text, vocab_size)
        self.merges = other.merges
"""

ENCODING = """
class Encoding:
    name = "r50k_base"

    def encode(self, text, *, allowed_special=(), disallowed_special="all"):
        assert allowed_special == "all"
        return list(text.encode("utf-8"))

    def decode(self, ids):
        return bytes(ids).decode("utf-8", errors="replace")

    def __call__(self):
        raise OSError("this is no factory")


made = Encoding()


def missing():
    raise OSError("no network")
"""


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("minbpe_like", MINBPE), ("encodings_like", ENCODING)):
        (tmp_path / f"{name}.py").write_text(text, "utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


@pytest.mark.usefixtures("modules")
def test_minbpe_class_is_adapted() -> None:
    implementation = Implementation("x", resolve("minbpe:minbpe_like:Regex"))
    assert implementation.declared == {"tie_break": "first-seen"}
    assert {"train", "encode", "decode", "pattern:cl100k", "train-pattern:o200k"} <= implementation.capabilities
    cases = [
        case
        for case in SPEC_CASES.values()
        if case.clause.id in ("MERGE-ORDER-1", "MERGE-ID-1", "SPECIAL-ID-1", "SPECIAL-ABSENT-1", "DECODE-BYTES-1")
    ]
    failed = [
        case.id
        for case in cases
        if skip_reason(case, implementation) is None and judge(case, implementation) is not None
    ]
    assert failed == []
    assert "train-special" not in implementation.capabilities
    assert "special" in implementation.capabilities
    trained = implementation.train("ab ab", 257, [])
    assert trained.merges == [(b"a", b"b")]
    assert trained.proxy is not None
    assert trained.proxy.encode("ab ab") == [256, 32, 256]


@pytest.mark.usefixtures("modules")
def test_minbpe_class_without_pattern_is_adapted() -> None:
    implementation = Implementation("x", resolve("minbpe:minbpe_like:Basic"))
    assert not any("pattern" in capability for capability in implementation.capabilities)
    assert implementation.train("abab", 258, []).merges == [(b"a", b"b"), (b"ab", b"ab")]


@pytest.mark.usefixtures("modules")
def test_minbpe_class_declares_its_split() -> None:
    assert Implementation("x", resolve("minbpe:minbpe_like:Whole")).conventions["pattern"] == "none"
    assert Implementation("x", resolve("minbpe:minbpe_like:Basic")).conventions["pattern"] == "gpt2"


@pytest.mark.usefixtures("modules")
def test_minbpe_class_with_read_only_vocabulary_only_trains() -> None:
    implementation = Implementation("x", resolve("minbpe:minbpe_like:Computed"))
    assert implementation.capabilities & {"train", "encode", "decode"} == {"train"}
    assert implementation.train("abab", 258, []).vocab[257] == b"abab"
    (note,) = implementation.notes
    reported = "minbpe: Computed does not allow setting `vocab` and `merges`, so encoding is not tested (*vocab*)"
    assert fnmatchcase(note, f"the constructor raised NotImplementedError: {reported}")


@pytest.mark.usefixtures("modules")
def test_minbpe_adapter_rejects_what_the_class_cannot_represent() -> None:
    adapter = resolve("minbpe:minbpe_like:Basic")
    assert callable(adapter)
    with pytest.raises(ValueError, match="no byte or merge produces one of them"):
        adapter({}, [(b"ab", b"c")])
    with pytest.raises(ValueError, match="has no"):
        adapter({}, [])
    with pytest.raises(AdapterError, match="has no train and no encode and no decode"):
        resolve("minbpe:collections:OrderedDict")
    message = r"minbpe:(\w+):OfTable cannot be called without arguments .*; .* write --adapter \1:OfTable"
    with pytest.raises(AdapterError, match=message):
        resolve("minbpe:minbpe_like:OfTable")
    with pytest.raises(AdapterError, match="there is no module 'minbpe'"):
        resolve("minbpe:BasicTokenizer")


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize("name", ["made", "Encoding"])
def test_tiktoken_encoding_is_adapted(name: str) -> None:
    adapter: Any = resolve(f"encoding:encodings_like:{name}")
    assert adapter().encode("ab") == [97, 98]
    implementation = Implementation("x", adapter)
    assert implementation.fixed_model == "gpt2"
    assert implementation.capabilities & {"encode", "decode", "decode_bytes", "encode_batch"} == {"encode", "decode"}
    assert judge(SPEC_CASES["merge-gpt2-sentence"], implementation) is not None


@pytest.mark.usefixtures("modules")
def test_the_version_of_an_encoding_is_that_of_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("packed").mkdir()
    Path("packed", "__init__.py").write_text("__version__ = '3.1'", "utf-8")
    Path("packed", "inner.py").write_text(ENCODING, "utf-8")
    for name in ("packed", "packed.inner"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert Implementation("x", resolve("encoding:packed.inner:made")).version == "3.1"
    assert Implementation("x", resolve("encoding:encodings_like:made")).version == ""


@pytest.mark.usefixtures("modules")
def test_other_object_gives_one_line_error() -> None:
    with pytest.raises(AdapterError, match="encoding:sys:path has no encode and no decode and no name"):
        resolve("encoding:sys:path")
    with pytest.raises(AdapterError, match="cannot be called without arguments: no network"):
        resolve("encoding:encodings_like:missing")


READERS = """
from bpe_conformance.reference import Tokenizer

class Reader:
    conventions, version = {"lookup": "whole"}, "7"

    def __init__(self, inner):
        self.inner, self.encode = inner, inner.encode

    @classmethod
    def from_tokenizer_json(cls, path):
        return cls(Tokenizer.from_tokenizer_json(path))

class Reads(Reader):
    conventions = {}

    def decode(self, ids):
        return self.inner.decode(ids)
"""


@pytest.mark.slow
def test_a_class_that_reads_a_tokenizer_json_is_tested_with_golden_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "readers.py").write_text(READERS, "utf-8")
    monkeypatch.delitem(sys.modules, "readers", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    declared = Implementation("x", resolve("tokenizer-json:readers:Reader"))
    assert (declared.declared, declared.version) == ({"lookup": "whole"}, "7")
    implementation = Implementation("x", resolve("tokenizer-json:readers:Reads"))
    assert {"encode", "decode", "from_tokenizer_json", "special", "pattern:o200k"} <= implementation.capabilities
    assert not implementation.capabilities & {"train", "two ids"}
    tested = [case for case in SPEC_CASES.values() if skip_reason(case, implementation) is None]
    assert {case.conformance_class for case in tested} == {"encoder", "decoder", "pipeline"}
    few = {case.clause.id: case for case in tested if case.level == "must"}
    few |= {case.id: case for case in tested if case.clause.id in ("SPECIAL-DECODE-1", "ERROR-TABLE-1")}
    failed = [case.id for case in few.values() if judge(case, implementation) is not None]
    assert failed == ["special-decode-byte-map"]  # its special token spells other bytes
    with pytest.raises(AdapterError, match="has no from_tokenizer_json"):
        resolve("tokenizer-json:collections:OrderedDict")


def test_a_trained_minbpe_tokenizer_has_its_merges_by_rank_and_its_special_tokens() -> None:
    vocab = {byte: bytes([byte]) for byte in range(256)} | {256: b"bc", 257: b"ab"}
    inner = SimpleNamespace(merges={(97, 98): 257, (98, 99): 256}, vocab=vocab, special_tokens={"<|é|>": 300})
    assert MinbpeTokenizer(inner).merges == [(b"b", b"c"), (b"a", b"b")]
    assert MinbpeTokenizer(inner).vocab == {**vocab, 300: "<|é|>".encode()}
    inner.special_tokens = ["<|e|>"]  # without ids
    assert MinbpeTokenizer(inner).vocab == vocab


@pytest.mark.usefixtures("modules")
def test_minbpe_adapter_passes_on_only_what_the_class_takes() -> None:
    basic: Any = resolve("minbpe:minbpe_like:Basic")
    table = {byte: bytes([byte]) for byte in range(256)}
    for arguments in ((table, [], ["<|e|>"]), (table, [], None, "x")):
        with pytest.raises(NotImplementedError):
            basic(*arguments)
    with pytest.raises(NotImplementedError, match="takes no special tokens"):
        basic.train("abab", 257, ["<|e|>"])
    whole: Any = resolve("minbpe:minbpe_like:Whole")
    splitting: Any = resolve("minbpe:minbpe_like:Regex")
    assert whole.pattern == "none"
    assert not hasattr(splitting, "pattern")
    assert not hasattr(resolve("minbpe:minbpe_like:Own"), "pattern")
    assert (basic.conventions, whole.conventions) == ({"tie_break": "first-seen"}, {"tie_break": "lex-greater"})
    trained = splitting.train("ab ab", 257, [], "[a-z]+| ")
    assert trained._inner.pattern == "[a-z]+| "
    assert splitting(table, [], ["<|e|>"]).encode("a<|e|>") == [97, 256]


def test_an_encoding_is_asked_as_the_caller_asks() -> None:
    asked = list[dict[str, Any]]()

    class Both:
        def encode(self, text: str, *, allowed_special: Any = (), disallowed_special: Any = "all") -> list[int]:
            asked.append({"allowed_special": allowed_special, "disallowed_special": disallowed_special})
            return []

        def encode_batch(self, texts: list[str], *, allowed_special: Any = ()) -> list[tuple[int, ...]]:
            asked.append({"allowed_special": allowed_special})
            return [(1,), (2, 3)]

    made: Any = EncodingTokenizer(Both())
    made.encode("x")
    made.encode("x", allowed_special={"<|e|>"})
    made.encode("x", allowed_special={"<|e|>"}, disallowed_special=())
    assert asked == [
        {"allowed_special": "all", "disallowed_special": "all"},
        {"allowed_special": {"<|e|>"}, "disallowed_special": "all"},
        {"allowed_special": {"<|e|>"}, "disallowed_special": ()},
    ]
    assert made.encode_batch(("x", "y")) == [[1], [2, 3]]
    assert asked[3] == {"allowed_special": "all"}
    with pytest.raises(NotImplementedError, match="the encoding has no decode_bytes"):
        made.decode_bytes([1])
    one: Any = EncodingTokenizer(SimpleNamespace(encode=lambda text, allowed_special: []))
    with pytest.raises(NotImplementedError, match="the encoding's encode has no disallowed_special"):
        one.encode("x", disallowed_special=())


@pytest.mark.usefixtures("modules")
def test_an_encoding_of_another_name_is_its_own_model() -> None:
    nameless = "class Nameless:\n    encode = decode = 1\n\n\n"
    source = nameless + ENCODING.replace("r50k_base", "mine")
    Path("encodings_like.py").write_text(source, "utf-8")
    found: Any = resolve("encoding:encodings_like:made")
    assert (found.model, found.__name__) == ("mine", "mine")
    with pytest.raises(AdapterError, match="encoding:encodings_like:Nameless has no name; expected"):
        resolve("encoding:encodings_like:Nameless")


def test_a_class_that_reads_a_tokenizer_json_refuses_what_the_file_cannot_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reads:
        conventions: ClassVar = {"lookup": "bytes"}
        pattern, version = "x", "7"

        @classmethod
        def from_tokenizer_json(cls, path: str) -> Any:
            return json.loads(Path(path).read_text("utf-8"))

        @classmethod
        def train(cls, *arguments: Any) -> None: ...

    monkeypatch.setattr(tokenizer_json, "load", lambda _: Reads)
    adapter: Any = tokenizer_json.tokenizer_json("mine:Reads")
    table = {byte: bytes([byte]) for byte in range(256)}
    written = adapter(table, [], ["<|e|>"], PATTERNS["llama3"])
    assert "a" in written["model"]["vocab"]
    assert [token["content"] for token in written["added_tokens"]] == ["<|e|>"]
    assert written["pre_tokenizer"]["pretokenizers"][0]["pattern"] == {"Regex": PATTERNS["llama3"]}
    for name in ("from_tokenizer_json", "train", "conventions", "pattern", "version"):
        assert getattr(adapter, name) == getattr(Reads, name)
    del Reads.version  # then it is not that of the suite
    assert tokenizer_json.tokenizer_json("mine:Reads").version == ""  # type: ignore[attr-defined]
    with pytest.raises(NotImplementedError, match="one token two ids"):
        adapter({**table, 300: b"a"}, [])
    for absent, named in ((b"az", "0x61"), (b"\xff", "0xff")):
        with pytest.raises(ValueError, match=f"the vocabulary lacks the byte {named}"):
            adapter({index: token for index, token in table.items() if token not in absent}, [])
    monkeypatch.setattr(tokenizer_json, "load", lambda _: str)
    with pytest.raises(AdapterError, match=r"tokenizer-json:x:y has no from_tokenizer_json\(path\)"):
        tokenizer_json.tokenizer_json("x:y")


@pytest.mark.parametrize("slots", [("path", "__weakref__"), ("path",)])
def test_a_tokenizer_json_stays_as_long_as_its_tokenizer(
    slots: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lazy:
        __slots__ = slots

        @classmethod
        def from_tokenizer_json(cls, path: str) -> Any:
            made = cls()
            made.path = path
            return made

    monkeypatch.setattr(tokenizer_json, "load", lambda _: Lazy)
    adapter: Any = tokenizer_json.tokenizer_json("mine:Lazy")
    made = adapter({byte: bytes([byte]) for byte in range(256)}, [])
    path = Path(made.path)
    assert path.exists()
    del made
    gc.collect()
    assert path.exists() is ("__weakref__" not in Lazy.__slots__)
    del adapter
    gc.collect()
    assert not path.exists()
