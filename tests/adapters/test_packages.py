"""Each adapter of a package passes a few cases if the package is installed, or else says what to install."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
import pytest
import tokenizers

from bpe_conformance.adapters.errors import AdapterUnavailable
from bpe_conformance.adapters.loading import BUILT_IN, resolve
from bpe_conformance.adapters.packages import OfPackage, calls, refuse_special_tokens, require, temporary_file
from bpe_conformance.adapters.packages.tokenizer_json import (
    BpeQwen,
    OnnxruntimeExtensions,
    PytorchTokenizers,
    Quicktok,
    QuicktokEncoding,
    TuetokenCore,
    characters_of,
    write_gpt2_files,
    write_tokenizer_json,
)
from bpe_conformance.adapters.packages.unitoken import UniTokenizer, UniTokenizerLargestContent
from bpe_conformance.cases.judging import judge, skip_reason
from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.reference.textbook import build_vocab
from bpe_conformance.spec import installed_spec

SPEC_CASES = {case.id: case for case in installed_spec().cases}
FOR_ALL = (
    "merge-priority-beats-leftmost",
    "merge-gpt2-sentence",
    "batch-order",
    "train-low-lower-essay",
    "train-end-one-merge-short",
)
FOR_ENGINES = (
    *FOR_ALL,
    "merge-order-not-longest-left",
    "merge-long-100",
    "split-default-not-cl100k",
    "special-scan-double",
    "decode-text-leading-space",
)
"""Cases for engines, most of which use files of tiktoken or Hugging Face: merge order, long words, default pattern."""
FOR_OWN_FORMS = (
    *FOR_ALL,
    "merge-gpt2-digits",
    "split-space-tab",
    "special-scan-prefix",
    "decode-utf8-token",
    "file-load-plain",
    "train-replace-run-of-three",
)
"""Cases for other packages, most of which have their own ids or files: digits, tabs, parts of UTF-8, files, runs."""
PACKAGES = {
    "bpe-from-scratch": ("bpe_from_scratch", FOR_OWN_FORMS),
    "bpe-openai-cl100k": ("bpe_openai", FOR_ENGINES),
    "bpe-openai-o200k": ("bpe_openai", FOR_ENGINES),
    "bpetokenizer": ("bpetokenizer", FOR_OWN_FORMS),
    "bytetok": ("bytetok", FOR_OWN_FORMS),
    "fastokens": ("fastokens", FOR_ENGINES),
    "fastokens-ranks": ("fastokens", FOR_ENGINES),
    "ffbpe": ("ffbpe", FOR_OWN_FORMS),
    "ffbpe-largest-content": ("ffbpe", FOR_OWN_FORMS),
    "gigabpe": ("gigabpe", FOR_ENGINES),
    "gigatoken": ("gigatoken", FOR_ENGINES),
    "huggingface-ignore-merges": ("tokenizers", FOR_ENGINES),
    "kitoken": ("kitoken", FOR_OWN_FORMS),
    "lexibyte": ("lexibyte", FOR_OWN_FORMS),
    "minibperust": ("MiniBpeRust", FOR_OWN_FORMS),
    "onnxruntime-extensions": ("onnxruntime_extensions", FOR_ENGINES),
    "puretiktoken-cl100k": ("puretiktoken", FOR_OWN_FORMS),
    "puretiktoken-o200k": ("puretiktoken", FOR_OWN_FORMS),
    "pytorch-tokenizers": ("pytorch_tokenizers", FOR_ENGINES),
    "riptoken": ("riptoken", FOR_ENGINES),
    "rs-bpe-cl100k": ("rs_bpe", FOR_OWN_FORMS),
    "rs-bpe-o200k": ("rs_bpe", FOR_OWN_FORMS),
    "splintr": ("splintr", FOR_ENGINES),
    "splintr-cl100k": ("splintr", FOR_ENGINES),
    "splintr-json": ("splintr", FOR_ENGINES),
    "splintr-o200k": ("splintr", FOR_ENGINES),
    "tiktoken-gpt2": ("tiktoken", FOR_ENGINES),
    "tinybpe": ("tinybpe", FOR_OWN_FORMS),
    "tinybpe-cl100k": ("tinybpe", FOR_OWN_FORMS),
    "tinybpe-gpt2": ("tinybpe", FOR_OWN_FORMS),
    "tinybpe-o200k": ("tinybpe", FOR_OWN_FORMS),
    "tokie": ("tokie", FOR_ENGINES),
    "toktokenizer": ("toktokenizer", FOR_OWN_FORMS),
    "transformers": ("transformers", FOR_ENGINES),
    "turbobpe": ("turbobpe", FOR_OWN_FORMS),
    "uni-tokenizer": ("uni_tokenizer", FOR_ENGINES),
    "uni-tokenizer-largest-content": ("uni_tokenizer", FOR_ENGINES),
    "wordchipper": ("wordchipper", FOR_OWN_FORMS),
}
"""Short name → the imported module and the cases to test."""
FAULTS = {
    "bpe-from-scratch": {"special-scan-prefix"},
    "bpetokenizer": {"special-scan-prefix", "train-end-one-merge-short"},
    "bytetok": {"special-scan-prefix"},
    "ffbpe": {"file-load-plain", "special-scan-prefix"},
    "ffbpe-largest-content": {"file-load-plain", "special-scan-prefix"},
    "gigatoken": {"train-end-one-merge-short"},
    "kitoken": {"special-scan-prefix", "split-space-tab"},
    "lexibyte": {"special-scan-prefix"},
    "minibperust": {"special-scan-prefix"},
    "onnxruntime-extensions": {"merge-order-not-longest-left"},
    "pytorch-tokenizers": {"merge-order-not-longest-left"},
    "riptoken": {"merge-long-100"},
    "tinybpe": {"decode-utf8-token", "special-scan-prefix"},
    "tinybpe-gpt2": {"merge-gpt2-digits"},
    "tokie": {"merge-order-not-longest-left", "split-default-not-cl100k"},
    "toktokenizer": {
        "decode-utf8-token",
        "merge-gpt2-sentence",
        "split-space-tab",
        "train-end-one-merge-short",
        "train-low-lower-essay",
        "train-replace-run-of-three",
    },
    "turbobpe": {"special-scan-prefix", "train-replace-run-of-three"},
    "uni-tokenizer": {"special-scan-double"},
    "uni-tokenizer-largest-content": {"special-scan-double"},
}
"""The cases that a package fails, each for a fault listed in tests/survey/findings.yaml."""


@pytest.mark.parametrize("name", PACKAGES)
def test_package_passes_a_few_cases(name: str) -> None:
    try:
        implementation = Implementation(name, resolve(name))
    except AdapterUnavailable as absent:
        pytest.skip(str(absent))
    _, cases = PACKAGES[name]
    judged = [case for case in map(SPEC_CASES.__getitem__, cases) if skip_reason(case, implementation) is None]
    assert judged or implementation.fixed_model not in (None, "gpt2")
    failed = {case.id for case in judged if judge(case, implementation) is not None}
    assert failed == FAULTS.get(name, set())


@pytest.mark.parametrize("name", PACKAGES)
def test_missing_package_gives_one_line_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, _ = PACKAGES[name]
    monkeypatch.delitem(sys.modules, BUILT_IN[name].partition(":")[0], raising=False)
    for part in [part for part in sys.modules if part.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, part)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(AdapterUnavailable, match=rf"^{module} is not installed; install it: pip install \S+$"):
        resolve(name)


def test_a_package_without_the_module_that_the_adapter_needs_is_said_to_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half.py").touch()
    (tmp_path / "whole.py").write_text("import no_such_thing_at_all", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, lacks in (("half.part", "half.part"), ("whole", "no_such_thing_at_all")):
        with pytest.raises(AdapterUnavailable) as caught:
            require(name, "the-package")
        package = name.partition(".")[0]
        help_line = "install it: pip install the-package"
        assert str(caught.value).startswith(f"{package} cannot be imported: No module named {lacks!r}")
        assert str(caught.value).endswith(help_line)


@pytest.mark.parametrize(("installed", "said"), [("1.2", "1.2"), ("", "1.0")])
def test_the_version_of_a_package_is_the_installed_one(
    installed: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stale.py").write_text("__version__ = '1.0'\n", "utf-8")
    if installed:
        (tmp_path / "stale-1.2.dist-info").mkdir()
        (tmp_path / "stale-1.2.dist-info" / "METADATA").write_text(f"Name: stale\nVersion: {installed}\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "stale", raising=False)

    class Stale(OfPackage):
        module = "stale"

    for install in ("", "stale", "stale>1", "'stale>=1.1'"):
        Stale.install, Stale.version = install, ""
        Stale.import_package()
        assert Stale.version == said


def test_a_tokenizer_json_holds_special_tokens_that_spell_other_bytes_but_none_that_is_another_token(
    tmp_path: Path,
) -> None:
    spelled = {"\u0120", "\xe9", "\xff", "\xc3", " "}  # each is an entry for a byte, or its text is such an entry
    for special in permutations(["<\xe9>", "\xc3\xa9", "<s>", *spelled], 2):
        vocab = {byte: bytes([byte]) for byte in range(256)} | dict(enumerate((one.encode() for one in special), 300))
        if spelled & {*special}:
            with pytest.raises(ValueError, match=r"is the spelling of another|is also an ordinary|spells other"):
                write_tokenizer_json(str(tmp_path), vocab, [], special, None)
        else:
            tokenizer = tokenizers.Tokenizer.from_file(write_tokenizer_json(str(tmp_path), vocab, [], special, None))
            assert tokenizer.encode(" ".join(special), add_special_tokens=False).ids == [300, 32, 301]


@pytest.mark.parametrize("text", ["<\xe9>", "\xc3\xa9", "\xe9"])
def test_a_tokenizer_json_refuses_special_tokens_that_merges_give_with_another_spelling(
    text: str, tmp_path: Path
) -> None:
    data = text.encode()
    merges = [(data[:end], data[end : end + 1]) for end in range(1, len(data))]
    with pytest.raises(ValueError, match=r"is also an ordinary token, with another spelling$"):
        write_tokenizer_json(str(tmp_path), build_vocab(merges), merges, [text], None)


def test_a_tokenizer_json_lacks_the_bytes_that_the_vocabulary_lacks(tmp_path: Path) -> None:
    vocab = {byte: bytes([byte]) for byte in range(256) if byte != ord("z")} | {256: b"<z>"}
    document = json.loads(Path(write_tokenizer_json(str(tmp_path), vocab, [], ["<z>", "<a>"], None)).read_text("utf-8"))
    assert "z" not in document["model"]["vocab"]
    assert {one["content"]: one["id"] for one in document["added_tokens"]} == {"<z>": 256, "<a>": 257}


def test_a_method_of_a_package_gets_a_list_or_a_text() -> None:
    class Adapter:
        encode = calls("encode", tuple)
        encode_batch = calls("encode", list, 1, last=2)
        _tokenizer = SimpleNamespace(encode=lambda *given, **named: [*given, *named.values()])

    assert Adapter().encode("ab") == ("ab",)
    assert Adapter().encode((1, 2)) == ([1, 2],)
    assert Adapter().encode_batch(("a", "b")) == [["a", "b"], 1, 2]


class HoldsOne:
    """A streamer of transformers and a detokenizer of mlx-lm, which give each text when the next one arrives."""

    def __init__(self, tokenizer: Any) -> None:
        self.last_segment, self._held = "", ""
        self._texts: list[str] = []

    def add_token(self, index: int) -> None:
        self.last_segment, self._held = self._held, chr(index)

    def finalize(self) -> None:
        self.last_segment = self._held

    def put(self, ids: Any) -> None:
        for index in ids:
            self.add_token(int(index))
            self._texts.append(self.last_segment)

    def end(self) -> None:
        self.finalize()
        self._texts.append(self.last_segment)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if not self._texts:
            raise StopIteration
        return self._texts.pop(0)


@pytest.mark.parametrize("name", ["transformers:StreamerTokenizer", "mlx_lm:Tokenizer", "mlx_lm:NaiveTokenizer"])
def test_what_a_streamer_holds_is_yielded_at_the_end_and_nothing_before_it_can_be(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _, adapter = name.partition(":")
    package = SimpleNamespace(__version__="1", TextIteratorStreamer=HoldsOne)
    detokenizers = SimpleNamespace(BPEStreamingDetokenizer=HoldsOne, NaiveStreamingDetokenizer=HoldsOne)
    required = ("transformers", "transformers.models.gpt2.tokenization_gpt2", "transformers.generation.streamers")
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "1")
    with patch.dict(sys.modules, {**dict.fromkeys(required, package), "mlx_lm.tokenizer_utils": detokenizers}):
        loaded = getattr(importlib.import_module(f"bpe_conformance.adapters.packages.{module}"), adapter)
    tokenizer = loaded.__new__(loaded)
    tokenizer._tokenizer = None
    read: list[int] = []
    ids = (read.append(index) or index for index in (97, 98, 99))
    assert [(text, len(read)) for text in tokenizer.decode_iterable(ids)] == [("", 1), ("a", 2), ("b", 3), ("c", 3)]


def test_a_file_for_a_package_holds_the_data_while_it_is_loaded() -> None:
    with temporary_file("name.json", b"ab") as path:
        assert Path(path).name == "name.json"
        assert Path(path).read_bytes() == b"ab"
    assert not Path(path).exists()


def test_a_package_without_special_tokens_refuses_them() -> None:
    refuse_special_tokens([])
    with pytest.raises(NotImplementedError, match="does not support special tokens"):
        refuse_special_tokens(["<|e|>"])


def test_tiktoken_gets_no_empty_special_token() -> None:
    pytest.importorskip("tiktoken")
    adapter: Any = resolve("tiktoken")
    with pytest.raises(ValueError, match="a special token is empty"):
        adapter({byte: bytes([byte]) for byte in range(256)}, [], [""])


def test_tiktoken_flushes_what_is_cut_and_spans_whole_characters() -> None:
    pytest.importorskip("tiktoken")
    tokenizer: Any = resolve("tiktoken")({byte: bytes([byte]) for byte in range(256)}, [])
    assert "".join(tokenizer.decode_iterable([0x61, 0xE2, 0x82])) == "a\ufffd"
    ids, spans = tokenizer.encode_with_offsets("a\u0100\u00bf\u0800")
    assert ids == [*"a\u0100\u00bf\u0800".encode()]
    assert spans == [(0, 1), (1, 2), (1, 2), (2, 3), (2, 3), (3, 4), (3, 4), (3, 4)]


def test_huggingface_keeps_every_special_token_and_the_first_of_two_ids() -> None:
    merges = [(b" ", b"a"), (b"\xc3", b"\xa9")]
    vocab = {**build_vocab(merges), 300: b"a"}
    adapter: Any = resolve("huggingface")
    tokenizer = adapter(vocab, merges, [" ", " a", "\xe9", "<|\u65e5|>"])  # three of them are other tokens, too
    entries = tokenizer.vocab
    ids = tokenizer.encode("a<|\u65e5|> a")
    assert [entries[index] for index in ids] == [b"a", "<|\u65e5|>".encode(), b" a"]
    assert ids[0] == 97
    assert "".join(tokenizer.decode_iterable([*ids, 97, 0xE2, 0x82])) == "a<|\u65e5|> aa\ufffd"


def test_what_huggingface_learns_has_the_same_special_tokens_and_pattern(tmp_path: Path) -> None:
    adapter: Any = resolve("huggingface")
    trained = adapter.train("a.a.a<|e|>", 258, ["<|e|>"], ".+")  # with GPT-2's pattern, there is no pair
    assert trained.merges == [(b".", b"a")]
    ids = trained.encode("a.a<|e|>")
    assert [trained.vocab[index] for index in ids] == [b"a", b".a", b"<|e|>"]
    template = tokenizers.processors.TemplateProcessing(single="<|e|> $A", special_tokens=[("<|e|>", ids[-1])])
    trained._tokenizer.post_processor = template
    trained._tokenizer.save(str(tmp_path / "tokenizer.json"))
    loaded = adapter.from_tokenizer_json(str(tmp_path / "tokenizer.json"))  # the template adds nothing
    assert loaded.encode("a") == ids[:1]
    assert loaded.encode_batch(["a"]) == [ids[:1]]
    assert loaded.encode_with_offsets("a") == (ids[:1], [(0, 1)])


@pytest.mark.parametrize(("name", "merge"), [("rustbpe", (b".", b"a")), ("bpeasy", (b".", b"a"))])
def test_a_trainer_gets_the_pattern_and_has_no_longest_token(name: str, merge: tuple[bytes, bytes]) -> None:
    pytest.importorskip(name)
    adapter: Any = resolve(name)
    learned = adapter.train("a.a.a", 257, [], ".+")
    assert (learned.merges, learned.vocab) == ([merge], build_vocab([merge]))
    assert b" " + b"b" * 40 in adapter.train("aa " + "b" * 40, 300, []).vocab.values()
    with pytest.raises(NotImplementedError, match="does not support special tokens"):
        adapter.train("ab", 257, ["<|e|>"])


def test_the_trainer_of_tiktoken_and_its_engine_have_the_same_pattern() -> None:
    pytest.importorskip("tiktoken")
    adapter: Any = resolve("tiktoken-educational")
    trained = adapter.train("a.a.a", 257, [], ".+")
    assert trained.merges == [(b"a", b".")]
    assert trained.encode("a.a") == [256, 97]


def test_the_files_of_gpt2_hold_the_merges_of_a_tokenizer_json(tmp_path: Path) -> None:
    for merges in (["a b", "ab c"], [["a", "b"], ["ab", "c"]]):  # two spellings of the same
        vocab, written = write_gpt2_files(str(tmp_path), {"vocab": {"a": 1}, "merges": merges})
        assert json.loads(vocab.read_text("utf-8")) == {"a": 1}
        assert written.read_bytes() == b"#version: 0.2\na b\nab c\n"


def test_spans_in_bytes_become_spans_in_characters() -> None:
    assert characters_of("a\u20acb", [(0, 1), (1, 4), (4, 5), (0, 5), (1, 2), (2, 4)]) == [
        *((0, 1), (1, 2), (2, 3), (0, 3), (1, 2), (1, 2))
    ]


def test_an_array_of_ids_is_cut_where_each_text_starts() -> None:
    def encode_batch(texts: list[str], with_special: bool = False) -> tuple[Any, Any]:
        assert with_special
        return np.array([1, 2, 3, 4]), np.array([0, 1, 1, 4])

    tokenizer = QuicktokEncoding(SimpleNamespace(encode_batch=encode_batch))
    assert tokenizer.encode_batch(("a", "", "bcd")) == [[1], [], [2, 3, 4]]


def test_the_minimal_adapter_passes_the_cases_of_an_encoder() -> None:
    implementation = Implementation("minimal", resolve("minimal"))
    of_merges = ("SPECIAL-ABSENT-1", "SPECIAL-ORDER-1", "ERROR-TABLE-2", "MERGE-ORDER-1")
    clauses = (*of_merges, "DECODE-UTF8-1", "DECODE-UNKNOWN-1")
    few = [case for case in SPEC_CASES.values() if case.clause.id in clauses and not case.table.is_large]
    failed = [case.id for case in few if not skip_reason(case, implementation) and judge(case, implementation)]
    assert failed == []
    assert len(few) > 50
    empty: Any = resolve("minimal")(build_vocab([]), [], [""])
    assert (empty.encode(""), empty.encode("ab")) == ([], [97, 98])


@pytest.mark.parametrize(
    ("load", "why"),
    [
        (
            lambda path: TuetokenCore.from_tokenizer_json(path),
            "the core ignores the added tokens of a file; test tuetoken",
        ),
        (lambda _: TuetokenCore({}, [], ["<|e|>"]), "this package does not support special tokens"),
        (lambda path: BpeQwen.from_tokenizer_json(path), "bpe-qwen has one .*; test it with a model: bpe-qwen:PATH"),
        (
            lambda path: Quicktok.from_tokenizer_json(path),
            "quicktok imports few .*; test it with a model: quicktok:PATH",
        ),
        (lambda path: BpeQwen.from_model_file(path), "its first step is not a split by Qwen2's expression"),
    ],
)
def test_a_package_that_does_not_do_what_a_file_says_refuses_it(
    load: Callable[[str], object], why: str, tmp_path: Path
) -> None:
    path = write_tokenizer_json(str(tmp_path), build_vocab([]), [], ["<|e|>"], PATTERNS["llama3"])
    with pytest.raises((NotImplementedError, ValueError), match=f"^{why}"):
        load(path)


def test_onnxruntime_extensions_reads_the_split_of_a_file_that_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def tokenizer(folder: str, options: dict[str, bool]) -> Any:
        assert options == {"skip_special_tokens": False}
        return json.loads(Path(folder, "tokenizer_config.json").read_text("utf-8"))["tokenizer_class"]

    package = SimpleNamespace(Tokenizer=tokenizer)
    monkeypatch.setattr(OnnxruntimeExtensions, "package", package, raising=False)
    for pattern, kind in ((None, "GPT2Tokenizer"), (PATTERNS["llama3"], "PreTrainedTokenizerFast")):
        assert OnnxruntimeExtensions(build_vocab([]), [], None, pattern)._tokenizer == kind


def test_pytorch_tokenizers_reads_the_file_before_it_encodes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Encoder:
        model: Any = None

        def load(self, path: str) -> None:
            self.model = json.loads(Path(path).read_text("utf-8"))["model"]

        def encode(self, text: str) -> tuple[int, ...]:
            return tuple(self.model["vocab"][char] for char in text)

    monkeypatch.setattr(PytorchTokenizers, "package", SimpleNamespace(CppHFTokenizer=Encoder), raising=False)
    assert PytorchTokenizers(build_vocab([]), []).encode("ba") == [98, 97]


def test_the_crate_unitoken_gets_the_first_of_two_ids_and_the_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    package = SimpleNamespace(BpeEncoder=lambda **arguments: arguments)
    monkeypatch.setattr(UniTokenizer, "package", package, raising=False)
    for pattern, passed in ((None, PATTERNS["gpt2"]), ("x", "x")):
        given = UniTokenizer({1: b"a", 2: b"a"}, [], ("<|e|>",), pattern)._tokenizer
        assert given == {"vocab": {b"a": 1}, "merges": [], "special_tokens": ["<|e|>"], "pat_str": passed}


def test_the_crate_unitoken_trains_by_the_rule_for_ties_of_each_class(monkeypatch: pytest.MonkeyPatch) -> None:
    package = MagicMock()
    trained = package.BpeTrainer.return_value.validate_model.return_value
    trained.vocab, trained.save_merges_txt = {}, Path.touch
    monkeypatch.setattr(UniTokenizer, "package", package, raising=False)
    rules: list[tuple[Any, str | None]] = [(UniTokenizer, None), (UniTokenizerLargestContent, "largest_content")]
    for target, rule in rules:
        target.train("ab", 257, ["<|e|>"])
        assert package.BpeTrainer.call_args.args == (["<|e|>"],)
        assert package.BpeTrainer.call_args.kwargs == {"tie_break": rule}
