"""The CS336 pair is read in all the forms in which solutions write it, and no file can call anything."""

from __future__ import annotations

import base64
import collections
import json
import os
import pickle
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe_conformance.fixtures import spell
from bpe_conformance.reference import Tokenizer
from bpe_conformance.reference.formats.cs336 import read

TEXT = "The café costs 12 €, “naïve” 🦊🦊 don't!\n\tthe the cafés\x00\x7f ∑ 日本 日本語 naïve café\n" * 3
OURS = Tokenizer.train(TEXT, 330, ["<|endoftext|>", "日本語"])
VOCAB, MERGES = OURS.vocab, OURS.merges
WAYS: dict[str, Callable[[bytes], Any]] = {
    "Latin-1": lambda token: token.decode("latin-1"),
    "GPT-2's": spell,
    "hexadecimal": bytes.hex,
    "HEX": lambda token: token.hex().upper(),
    "base64": lambda token: base64.b64encode(token).decode("ascii"),
    "literals": repr,
    "lists": list,
}


def save(path: Path, value: Any) -> Path:
    if path.suffix == ".pkl":
        path.write_bytes(pickle.dumps(value))
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=len(path.name) % 2 == 0)
        path.write_bytes(text.encode("utf-8"))
    return path


def assert_read(*paths: Path) -> None:
    model = read(*paths, special_tokens=OURS.special_tokens)
    assert dict(model.vocab) == VOCAB
    assert list(model.merges) == MERGES
    assert Tokenizer.from_model(model).encode(TEXT + "<|endoftext|>") == OURS.encode(TEXT + "<|endoftext|>")


def refused(*paths: Path) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read(*paths)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    assert str(paths[0].parent) in message
    return message


# Files that are read


@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize("name", ["vocab.pkl", "vocab.json"])
def test_read_accepts_pickles_with_any_name(tmp_path: Path, name: str, protocol: int) -> None:
    files = tmp_path / name, tmp_path / "merges.pickle"
    for file, value in zip(files, (VOCAB, MERGES), strict=True):
        file.write_bytes(pickle.dumps(value, protocol=protocol))
    assert_read(*files)


@pytest.mark.parametrize(
    "value",
    [
        (VOCAB, MERGES),
        [VOCAB, MERGES],
        {"vocab": VOCAB, "merges": MERGES},
        {"merges": tuple(MERGES), "vocabulary": {token: index for index, token in VOCAB.items()}},
        {"vocab": VOCAB, "merges": [list(pair) for pair in MERGES], "special_tokens": ["<|endoftext|>"]},
    ],
)
def test_read_accepts_one_pickle_of_both_parts(tmp_path: Path, value: Any) -> None:
    assert_read(save(tmp_path / "both.pkl", value))


def test_read_accepts_concatenated_pickles(tmp_path: Path) -> None:
    file = tmp_path / "both.pkl"
    file.write_bytes(pickle.dumps(VOCAB) + pickle.dumps(MERGES))
    assert_read(file)


@pytest.mark.parametrize("way", WAYS)
def test_read_accepts_json_from_ids_to_tokens(tmp_path: Path, way: str) -> None:
    written = WAYS[way]
    vocab = {index: written(token) for index, token in VOCAB.items()}
    merges = [[written(left), written(right)] for left, right in MERGES]
    assert_read(save(tmp_path / "vocab.json", vocab), save(tmp_path / "merges.json", merges))
    assert_read(save(tmp_path / "both.json", {"vocab": vocab, "merges": merges}))
    assert_read(save(tmp_path / "vocab.json", vocab), save(tmp_path / "merges.pkl", MERGES))


@pytest.mark.parametrize("way", [way for way in WAYS if way != "lists"])
def test_read_accepts_json_from_tokens_to_ids(tmp_path: Path, way: str) -> None:
    vocab = {WAYS[way](token): index for index, token in VOCAB.items()}
    assert_read(save(tmp_path / "vocab.json", vocab), save(tmp_path / "merges.pkl", MERGES))


@pytest.mark.parametrize("way", ["GPT-2's", "hexadecimal", "base64", "literals"])
@pytest.mark.parametrize("form", ["{} {}\n", "{}, {}\r\n", "({}, {})\n"])
def test_read_accepts_merges_as_lines(tmp_path: Path, way: str, form: str) -> None:
    if way != "literals" and "," in form:
        return
    vocab = save(tmp_path / "vocab.json", {index: list(token) for index, token in VOCAB.items()})
    lines = "".join(form.format(WAYS[way](left), WAYS[way](right)) for left, right in MERGES)
    assert_read(vocab, save(tmp_path / "merges.txt", lines))
    assert_read(vocab, save(tmp_path / "merges.txt", "#version: 0.2\n" + lines))


def test_read_uses_special_tokens_in_the_file(tmp_path: Path) -> None:
    file = save(tmp_path / "both.pkl", {"vocab": VOCAB, "merges": MERGES, "special_tokens": ["<|endoftext|>"]})
    assert read(file).special_tokens == ("<|endoftext|>",)
    assert read(file, special_tokens=["日本語"], pattern="none").special_tokens == ("日本語",)
    assert read(save(tmp_path / "two.pkl", (VOCAB, MERGES))).special_tokens is None


def test_random_tables_survive_every_spelling(tmp_path: Path) -> None:
    draw = random.Random(0)
    for number in range(40):
        text = "".join(draw.choice("ab1 é日'F\x90") for _ in range(60))
        ours = Tokenizer.train(text, 256 + draw.randrange(30))
        entries = list(ours.vocab.items())
        draw.shuffle(entries)
        way = draw.choice(list(WAYS.values()))
        vocab = save(tmp_path / f"vocab{number}.json", {index: way(token) for index, token in entries})
        merges = save(tmp_path / f"merges{number}.json", [[way(left), way(right)] for left, right in ours.merges])
        model = read(vocab, merges)
        assert (dict(model.vocab), list(model.merges)) == (ours.vocab, ours.merges)


# Files that are rejected


class Calls:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickle_that_calls_a_function_is_rejected(tmp_path: Path, protocol: int) -> None:
    witness = tmp_path / "called"
    calls = {
        "posix.system": Calls(os.system, f"touch {witness}"),
        "eval": Calls(eval, f"open({str(witness)!r}, 'w')"),
        "exec": Calls(exec, f"open({str(witness)!r}, 'w')"),
        "_reconstructor": Calls(object.__reduce_ex__, object(), 2),
    }
    for name, call in calls.items():
        for value in (call, {0: call}, (VOCAB, [call])):
            file = tmp_path / "bad.pkl"
            try:
                file.write_bytes(pickle.dumps(value, protocol=protocol))
            except (pickle.PicklingError, TypeError):
                continue
            message = refused(file)
            assert "the pickle calls for " in message, message
            assert name in message or name == "_reconstructor" or (protocol == 2 and "_codecs.encode" in message)
    assert not witness.exists()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x80\x04cos\nsystem\n(S'true'\ntR.", "the pickle calls for os.system"),
        (b"\x80\x04Ppersistent\n.", "the pickle calls for the opcode PERSID"),
        (b"\x80\x04\x82\x01.", "the pickle calls for the opcode EXT1"),
        (b"\x80\x04}r\xff\xff\xff\x7f.", "the merges are missing"),
        (b"\x80\x04}p99999999999\n.", "the merges are missing"),
        (b"\x80\x04})" + b"\x85" * 1_000_000 + b"K\x01s.", "not a pickle: a tuple is a key"),
        (b"\x80\x04}(K\x01K\x02K\x01K\x02u.", "not a pickle: the key 1 is a duplicate"),
        (b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"a.", "not a pickle: it ends too early"),
        (b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"}.", "the merges are missing"),
        (b"\x80\x04", "not a pickle"),
        (b"\x80", "not a pickle"),
        (b"\x80\x09}.", "not a pickle"),
        (b"\x80\x04.", "not a pickle"),
        (b"\x80\x04}h\x07.", "not a pickle"),
        (b"\x80\x04" + b"]" * 200_000 + b"a" * 199_999 + b".", "merge 0 is not a pair of tokens"),
        (b"\x80\x04" + b"(" * 200_000 + b".", "not a pickle"),
        (b"\x80\x04" + b")" + b"\x85" * 200_000 + b".", "merge 0 is not a pair of tokens"),
        (b"\x80\x04}]K\x01s.", "not a pickle: a list is a key"),
        (b"\x1f\x8b\x08\x00", "neither a pickle (of protocol 2 or later) nor UTF-8"),
        (b"{" * 100_000, "not JSON"),
        (b"[" * 100_000, "nested deeper than 64 levels"),
        (b'{"0": "a", "0": "b"}', "duplicate key '0'"),
        (b"", "'' is not a merge; expected two tokens and one space"),
        (b"hello", "'hello' is not a merge"),
        (b"a b\n  c\n", ":2: '  c' is not a merge"),
        (b"[1, 2]", "merge 0 is not a pair of tokens"),
        (b"[[1, 2]]", "the vocabulary is missing; there is merges"),
        (b"{}", "the vocabulary is dict"),
    ],
)
def test_malformed_or_hostile_file_gives_one_line_error(tmp_path: Path, data: bytes, what: str) -> None:
    file = tmp_path / "vocab.pkl"
    file.write_bytes(data)
    merges = save(tmp_path / "merges.json", []) if data == b"{}" else None
    if "merge 0" in what:
        merges, file = file, save(tmp_path / "v.pkl", VOCAB)
    assert what in refused(*(path for path in (file, merges) if path))


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (collections.OrderedDict(VOCAB), "the pickle calls for collections.OrderedDict; only plain dicts"),
        (Path("a"), "the pickle calls for pathlib."),
        ({0: bytearray(b"a")}, "the pickle calls for"),
        ({0: 1.5}, "the pickle calls for the opcode BINFLOAT"),
        ({0: None}, "the pickle calls for the opcode NONE"),
        ({0: 7}, "int instead of a token; expected bytes"),
        ({(97, 98): 256}, "the vocabulary has no token for the byte"),
        ((VOCAB, [(b"a", b"\xff")]), "the vocabulary lacks a part or the result of merge 0, b'a' b'\\xff'"),
        ({"a": b"a"}, "the vocabulary has str 'a' as an id"),
        ({"a": [256]}, "the vocabulary has str 'a' as an id"),
        ({0: [256]}, "list instead of a token"),
        ({1: b"a", "1": b"b"}, "an id of the vocabulary is a duplicate"),
        (b"abc", "bytes is neither a vocabulary nor merges"),
        ({"vocab": VOCAB, "merges": MERGES, "pattern": "x"}, "'pattern' is an unknown key"),
        ({"vocab": VOCAB, "merges": {(1, 2): 3}}, "merges is dict; expected a list of pairs of tokens"),
        ((VOCAB, [(b"a", 7)]), "int instead of a token"),
        ({"vocab": VOCAB}, "the merges are missing; there is vocab"),
        ({"vocab": VOCAB, "vocabulary": VOCAB, "merges": MERGES}, "the vocab is already in"),
        ({"special_tokens": "ab", "vocab": VOCAB, "merges": MERGES}, "special_tokens is str, not a list of strings"),
    ],
)
def test_other_values_are_reported(tmp_path: Path, value: Any, what: str) -> None:
    file = save(tmp_path / "vocab.pkl", value)
    has_merges = isinstance(value, tuple) or (isinstance(value, dict) and "vocab" in value) or isinstance(value, bytes)
    merges = () if has_merges else (save(tmp_path / "merges.pkl", MERGES),)
    assert what in refused(file, *merges)


def test_error_for_protocol_2_suggests_a_newer_one(tmp_path: Path) -> None:
    file = tmp_path / "vocab.pkl"
    file.write_bytes(pickle.dumps(VOCAB, protocol=2))
    assert "calls for _codecs.encode" in refused(file)
    assert "write it with pickle.HIGHEST_PROTOCOL" in refused(file)


@pytest.mark.parametrize("errors", ["replace", "ignore", "backslashreplace"])
def test_lost_bytes_are_reported(tmp_path: Path, errors: str) -> None:
    vocab = {index: token.decode("utf-8", errors=errors) for index, token in VOCAB.items()}
    message = refused(save(tmp_path / "vocab.json", vocab), save(tmp_path / "merges.pkl", MERGES))
    assert "the tokens are not Latin-1, GPT-2's spelling, hexadecimal, base64, Python literals or lists of" in message
    assert ("hold U+FFFD, so their bytes are lost" in message) == (errors == "replace")


def test_mix_of_utf8_and_latin1_is_rejected(tmp_path: Path) -> None:
    def mixed(token: bytes) -> str:
        try:
            return token.decode("utf-8")
        except UnicodeDecodeError:
            return token.decode("latin-1")

    for text in ("é é éa", "naïve naïve"):
        ours = Tokenizer.train(text, 300)
        vocab = save(tmp_path / "vocab.json", {index: mixed(token) for index, token in ours.vocab.items()})
        refused(vocab, save(tmp_path / "merges.json", [[mixed(left), mixed(right)] for left, right in ours.merges]))


def test_foreign_or_ambiguous_merges_are_rejected(tmp_path: Path) -> None:
    vocab = save(tmp_path / "vocab.json", {index: list(token) for index, token in VOCAB.items()})
    assert "no spelling" in refused(vocab, save(tmp_path / "merges.json", [["x", "q"]]))
    tokens = [*(bytes([byte]) for byte in range(256)), b"61", b"62", b"6162", b"ab"]
    both = save(tmp_path / "vocab.pkl", dict(enumerate(tokens)))
    message = refused(both, save(tmp_path / "merges.json", [["61", "62"]]))
    assert "the merges may be Latin-1 or GPT-2's spelling or hexadecimal; the vocabulary is neither" in message


def test_missing_file_or_part_is_reported(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refused(tmp_path / "vocab.pkl")
    merges = save(tmp_path / "merges.pkl", MERGES)
    assert "the vocabulary is missing; there is merges" in refused(merges)
    assert "the merges is already in" in refused(merges, merges)


def test_damaged_pickle_is_read_or_rejected_in_one_line(tmp_path: Path) -> None:
    draw, file = random.Random(1), tmp_path / "both.pkl"
    whole = pickle.dumps((dict(list(VOCAB.items())[:20]), MERGES[:20]))
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(2, len(data))] = draw.randrange(256)
        file.write_bytes(data[: draw.randrange(3, len(data) + 1)] if draw.random() < 0.3 else data)
        refused(file)
