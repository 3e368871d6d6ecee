"""Packs cover their model, are reproducible, and catch wrong tokenizers of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.project import Project
from jsonschema import Draft202012Validator

from bpe_conformance.cli import main
from bpe_conformance.fixtures import PATTERNS, Model
from bpe_conformance.packs import cases
from bpe_conformance.packs.files import load_pack
from bpe_conformance.reference import Tokenizer, textbook
from bpe_conformance.reference.formats import huggingface
from bpe_conformance.spec import installed_spec

SPECIAL = ("<|e|>", "<|e|><|e|>", "<|end|>")
TEXT = (
    "the cat's hat, they'll we've it's I'm he'd you're don't THE that then 's 123 1234 12345 99 é日本語の 日本 été "
    "we're you're they're aaaa aaa bbbb ab abc abcd abcabc banana bananas   \n\n  x\n    y\t\tz  the the then there "
    "(the) !!! ... ?! --- == \r\n"
)
FILES = ("pack.json", "table.json", "cases.json", "pack.schema.json")


def _toy(pattern: str = "cl100k") -> Model:
    trained = Tokenizer.train(TEXT * 3, 256 + len(SPECIAL) + 90, SPECIAL, pattern=pattern)
    order = [*range(256), *range(256 + len(SPECIAL), len(trained.vocab)), *range(256, 256 + len(SPECIAL))]
    vocab = {index: trained.vocab[old] for index, old in enumerate(order)}
    return Model(vocab, tuple(trained.merges), SPECIAL, pattern, "toy")


@pytest.fixture(scope="module")
def toy() -> Model:
    return _toy()


@pytest.fixture(scope="module")
def table(toy: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("table") / "toy.json"
    huggingface.write(file, toy)
    return file


LONG = (60, 200)  # the oracle takes quadratic time


@pytest.fixture(scope="module")
def pack(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "pack"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cases, "LONG", LONG)
        assert main(["pack", str(table), "-o", str(folder), "--seed", "7"]) == 0
    return folder


def _document(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text("utf-8"))


def test_every_file_is_valid_under_the_schema(pack: Path) -> None:
    validator, cases = Draft202012Validator(_document(pack, "pack.schema.json")), _document(pack, "cases.json")
    assert sorted(file.name for file in pack.iterdir()) == sorted(FILES)
    for name in FILES[:3]:
        assert not list(validator.iter_errors(_document(pack, name)))
    assert not validator.is_valid({**cases, "cases": cases["cases"][:1], "more": 1})


@pytest.mark.release
def test_packs_are_reproducible(pack: Path, table: Path, tmp_path: Path) -> None:
    code = f"""
import sys
from bpe_conformance.cli import main
from bpe_conformance.packs import cases
cases.LONG = {LONG}
sys.exit(main())
"""
    words = [sys.executable, "-c", code, "pack", str(table), "-o", str(tmp_path / "again"), "--seed", "7"]
    subprocess.run(words, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": "3"})
    for name in FILES:
        assert (pack / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_manifest_describes_the_pack(pack: Path, table: Path, toy: Model) -> None:
    manifest = _document(pack, "pack.json")
    assert manifest["model"] == "toy"
    assert manifest["source"]["sha256"].keys() == {"toy.json"}
    assert manifest["pattern"] == {"name": "cl100k", "regex": PATTERNS["cl100k"]}
    assert manifest["special_tokens"] == {text: 346 + place for place, text in enumerate(SPECIAL)}
    cases = manifest["counts"]["cases"]
    agree = manifest["engines"]["agree"]
    assert agree["tokenizers"]["agrees"] == cases
    assert agree["tiktoken"]["agrees"] + len(manifest["engines"]["differ"]) == cases
    assert {one["reason"] for one in manifest["engines"]["differ"]} <= {
        "if two special tokens begin at one position, it chooses by hash order"
    }
    assert _document(pack, "cases.json")["cases"][0]["id"].startswith("toy-longest-match-")


KINDS = {
    "longest-match": 9,
    "fewest-tokens": 7,
    "leftmost-first": 4,
    "latest-first": 4,
    "rightmost-of-equals": 8,
    "single-pass": 9,
    "never-again": 8,
    "split": 32,
    "empty": 1,
    "raw": 32,
    "scripts": 36,
    "real-text": 56,
    "special-alone": 3,
    "special-tripled": 3,
    "special-edge": 36,
    "special-beside": 3,
    "special-parts": 15,
    "special-alike": 13,
    "special-two": 24,
    "special-all": 2,
    "special-foreign": 13,
    "long": 16,
    "tokens": 1,
    "decode-broken": 42,
    "decode-all": 1,
    "decode-parts": 10,
    "decode-text": 6,
    "decode-special": 3,
    "decode-empty": 1,
    "stream": 39,
    "batch": 6,
    "detok-end": 40,
    "detok-rest": 34,
    "detok-held": 3,
    "detok-lazy": 2,
    "detok-broken": 2,
    "detok-all": 1,
    "detok-special": 3,
    "detok-text": 6,
    "offsets": 29,
}


def test_a_pack_has_cases_of_every_kind(pack: Path) -> None:
    ids = [case["id"] for case in _document(pack, "cases.json")["cases"]]
    assert Counter(name.removeprefix("toy-").rpartition("-")[0] for name in ids) == KINDS
    assert len(set(ids)) == len(ids)


def test_pack_covers_every_token_and_merge(pack: Path) -> None:
    coverage = _document(pack, "pack.json")["coverage"]
    for counts in (coverage["tokens"], coverage["merges"]):
        assert counts["reached"] >= 0.99 * (counts["all"] - counts["impossible"])
    assert coverage["pattern"]["alternatives"]["not_met"] == []
    found = coverage["words_that_a_wrong_encoder_encodes_otherwise"]
    assert all(found[name] for name in ("longest-match", "leftmost-first", "single-pass", "rightmost-of-equals"))


def test_coverage_agrees_with_another_encoder(pack: Path, toy: Model) -> None:
    encoder = textbook.Tokenizer(toy.vocab, toy.merges, toy.special_tokens, PATTERNS["cl100k"])
    cases, entries = (_document(pack, "cases.json")[name] for name in ("cases", "entries"))
    met = {token for case in cases if case["op"] == "encode" for token in encoder.tokens(case["input"]["text"])}
    for index in (index for first, last in entries["ids"] for index in range(first, last + 1)):
        met |= {*encoder.tokens(toy.vocab[index].decode("utf-8"))}
    coverage = _document(pack, "pack.json")["coverage"]["tokens"]
    assert len(met - {text.encode() for text in SPECIAL}) == coverage["reached"]
    decoded = {index for case in cases if case["op"] == "decode" for index in case["input"]["ids"]}
    assert decoded == set(toy.vocab)


WRONG: dict[str, Callable[[type[textbook.Tokenizer]], type[textbook.Tokenizer]]] = {}


def wrong(make: Callable[[type[textbook.Tokenizer]], type[textbook.Tokenizer]]) -> Any:
    WRONG[make.__name__] = make
    return make


@wrong
def special_first_in_list(base: type[textbook.Tokenizer]) -> type[textbook.Tokenizer]:
    class Wrong(base):  # type: ignore[misc,valid-type]
        def encode(self, text: str) -> list[int]:
            for token in self.special:
                before, found, after = text.partition(token)
                if found:
                    return [*self.encode(before), self.ids[token.encode()], *self.encode(after)]
            return super().encode(text)  # type: ignore[no-any-return]

    return Wrong


@wrong
def special_tokens_off(base: type[textbook.Tokenizer]) -> type[textbook.Tokenizer]:
    class Wrong(base):  # type: ignore[misc,valid-type]
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            super().__init__(*arguments, **keywords)
            self.special = []

    return Wrong


def _with_pattern(old: str, new: str) -> Callable[[type[textbook.Tokenizer]], type[textbook.Tokenizer]]:
    def make(base: type[textbook.Tokenizer]) -> type[textbook.Tokenizer]:
        class Wrong(base):  # type: ignore[misc,valid-type]
            def __init__(self, *arguments: Any, **keywords: Any) -> None:
                super().__init__(*arguments, **keywords)
                assert old in self.pattern
                self.pattern = self.pattern.replace(old, new)

        return Wrong

    return make


WRONG["no_contraction"] = _with_pattern("'(?i:[sdmt]|ll|ve|re)|", "")
WRONG["numbers_of_any_length"] = _with_pattern("{1,3}", "+")
WRONG["no_lookahead"] = _with_pattern(r"(?!\S)", "")


@wrong
def replaces_in_each_token(base: type[textbook.Tokenizer]) -> type[textbook.Tokenizer]:
    class Wrong(base):  # type: ignore[misc,valid-type]
        def decode(self, ids: Any) -> str:
            return "".join(self.vocab[index].decode("utf-8", "replace") for index in ids)

    return Wrong


def tidying(name: str, tidy: Callable[[str], str]) -> None:
    def make(base: type[textbook.Tokenizer]) -> type[textbook.Tokenizer]:
        class Wrong(base):  # type: ignore[misc,valid-type]
            def decode(self, ids: Any) -> str:
                return tidy(super().decode(ids))

        return Wrong

    WRONG[f"decodes_{name}"] = make


tidying("without_a_mark", lambda text: text.removeprefix("\ufeff"))
tidying("without_any_mark", lambda text: text.replace("\ufeff", ""))
tidying("composed", lambda text: unicodedata.normalize("NFC", text))
tidying("with_one_kind_of_line_end", lambda text: text.replace("\r\n", "\n"))
tidying("without_space_at_the_end", lambda text: text.rstrip(" "))


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_tokenizer_of_the_model_fails(name: str, pack: Path, toy: Model) -> None:
    tokenizer = WRONG[name](textbook.Tokenizer)(toy.vocab, toy.merges, toy.special_tokens, PATTERNS["cl100k"])
    assert next(_failures(pack, tokenizer, decode=name.startswith(("decodes_", "replaces_"))), None)


def test_the_correct_tokenizer_passes_in_another_test_runner(pack: Path, toy: Model) -> None:
    right = Tokenizer(toy.vocab, toy.merges, toy.special_tokens, pattern="cl100k")
    assert not list(_failures(pack, right))


def _failures(pack: Path, tokenizer: Any, decode: bool | None = None) -> Iterator[str]:
    """A test runner that uses only the JSON."""
    for case in _document(pack, "cases.json")["cases"]:
        if decode not in (None, case["op"] == "decode"):
            continue
        given, expect = case["input"], case["expect"].get("by_convention", {}).get("pair", case["expect"])
        if case["op"] == "decode":
            same = tokenizer.decode(given["ids"]) == expect["text"]
        elif case["op"] == "detokenize":
            text = "".join(tokenizer.decode_iterable(given["ids"]))
            same = text == expect.get("text", text)  # others limit what may be held back
        elif case["op"] == "offsets":
            ids, spans = tokenizer.encode_with_offsets(given["text"])
            same = (list(ids), list(map(list, spans))) == (expect["ids"], expect["offsets"])
        elif case["op"] == "batch":
            same = [tokenizer.encode(text) for text in given["texts"]] == [row["ids"] for row in expect["batch"]]
        else:
            same = tokenizer.encode(given["text"] if "text" in given else "".join(given["chunks"])) == expect["ids"]
        if not same:
            yield case["id"]


def test_adapters_are_tested_with_a_pack(project: Project, pack: Path) -> None:
    project.write("fixed.py", _FIXED.format(pack=str(pack)))
    for adapter, failed in (("tiktoken", 0), ("fixed:Right", 0), ("fixed:Wrong", 1)):
        result = project.pytester.runpytest_inprocess(
            "conformance", "--adapter", adapter, f"--bpe-pack={pack}", "--bpe-clause=MERGE-ORDER-1", "-q"
        )
        outcomes = result.parseoutcomes()
        assert bool(outcomes.get("failed")) == bool(failed), adapter
        assert outcomes.get("failed" if failed else "passed"), adapter
    output = result.stdout.str()
    assert "FAILED toy-fewest-tokens-0001 [MERGE-ORDER-1, MUST]" in output
    assert f"--bpe-pack {pack} --bpe-case toy-" in output


@pytest.mark.release
@pytest.mark.parametrize(
    ("adapter", "kinds"),
    [
        ("Right", set()),
        ("WrongStream", {"stream"}),
        ("WrongBatch", {"batch"}),
        ("WrongBytes", {"decode-broken", "decode-parts", "decode-all", "decode-special"}),
        ("WrongRaw", {"raw"}),
    ],
)
def test_a_fault_fails_the_cases_of_its_kind(adapter: str, kinds: set[str], project: Project, pack: Path) -> None:
    project.write("fixed.py", _FIXED.format(pack=str(pack)))
    report = project.path / "report.json"
    project.pytester.runpytest_inprocess(
        "conformance", "--adapter", f"fixed:{adapter}", f"--bpe-pack={pack}", f"--bpe-report={report}", "-q"
    )
    results = json.loads(report.read_text("utf-8"))["results"]
    failed = {result["id"] for result in results if result["state"] == "failed"}
    assert {name.removeprefix("toy-").rpartition("-")[0] for name in failed} == kinds


def test_a_pack_of_another_pattern_has_its_expression(tmp_path: Path) -> None:
    own = r"\p{L}+|\p{N}{1,2}|\s+"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cases, "LONG", LONG)
        huggingface.write(tmp_path / "toy.json", _toy(own))
        before = dict(PATTERNS)
        assert main(["pack", str(tmp_path / "toy.json"), "-o", str(tmp_path / "pack")]) == 0
    assert _document(tmp_path / "pack", "pack.json")["pattern"] == {"name": None, "regex": own}
    loaded = load_pack(tmp_path / "pack", installed_spec().clauses)
    assert {case.table.expression for case in loaded} == {own}
    assert before == PATTERNS


def test_outcomes_refer_to_the_table_of_a_pack_by_its_name(pytester: pytest.Pytester, pack: Path) -> None:
    config = pytester.parseconfigure("conformance", "--adapter", "textbook", f"--bpe-pack={pack}")
    spec = config.pluginmanager.getplugin("bpe-conformance-run").setup.spec
    assert all(spec.models[case.model.name] is case.model for case in spec.cases)


_FIXED = """
import json
from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.reference import textbook

TABLE = json.loads(open({pack!r} + "/table.json").read())
SPECIAL = json.loads(open({pack!r} + "/pack.json").read())["special_tokens"]


class Right(textbook.Tokenizer):
    model = "toy"

    def __init__(self):
        vocab = {{index: bytes.fromhex(token) for index, token in TABLE["vocab"]}}
        merges = [tuple(map(bytes.fromhex, pair)) for pair in TABLE["merges"]]
        super().__init__(vocab, merges, list(SPECIAL), PATTERNS["cl100k"])


class WrongStream(Right):
    def encode_iterable(self, chunks):
        yield from self.encode("".join(chunks)) + [0]


class WrongBatch(Right):
    def encode_batch(self, texts):
        return [self.encode(text) for text in texts[:-1]] + [[0]]


class WrongBytes(Right):
    def decode_bytes(self, ids):
        return super().decode_bytes(ids).decode("utf-8", "replace").encode()


class WrongRaw(Right):
    def encode(self, text):
        return super().encode(text.replace("__proto__", ""))


class Wrong(Right):
    def merge(self, word):
        return textbook.merge_by_pair(word, {{pair: -rank for pair, rank in self.ranks.items()}})
"""
