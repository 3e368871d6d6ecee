"""`allowed_special` and `disallowed_special` agree with tiktoken and with the textbook."""

from __future__ import annotations

import ast
import pickle
import random
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe_conformance.fixtures import END_OF_TEXT, PATTERNS, gpt2
from bpe_conformance.reference import Tokenizer, dispatch, textbook
from bpe_conformance.reference import tokenizer as tokenizer_module

SPECIAL = [END_OF_TEXT, "<|a b|>", "<s>", "日本|", "x<s>y", "(.*|"]
"""No two of these match at the same position, where tiktoken follows the order of a hash table."""
PIECES = [
    *SPECIAL,
    *("<|endoftext|", "<|end", "oftext|>", "<|", "|>", "<|a", " b|>", "<", "s>", "x", "y", "日", "本", "."),
    *("<|endof\u200btext|>", "<|ENDOFTEXT|>", "\uff1c|endoftext|\uff1e", "<|\u0435ndoftext|>", "<|endoftext\u0301|>"),
    *(" ", "  ", "\n", "'s", " the", "é", "🦊", "12", ".*", "(.*"),
]
NEITHER = ["the", "q", "<|", "s"]
Choice = Collection[str]


def error(call: Any, *arguments: Any, **keywords: Any) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        call(*arguments, **keywords)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    vocab, merges = gpt2()
    return Tokenizer(vocab, merges, SPECIAL)


def texts(draw: random.Random, many: int) -> list[str]:
    return ["".join(draw.choices(PIECES, k=draw.randrange(9))) for _ in range(many)]


def choices(draw: random.Random) -> dict[str, Choice]:
    """Return keywords, each of them absent, "all", or a set of special tokens and other strings."""

    def some() -> Choice:
        return set(draw.sample([*SPECIAL, *NEITHER], draw.randrange(4)))

    kinds: dict[str, Choice] = {}
    for name in ("allowed_special", "disallowed_special"):
        kind = draw.randrange(5)
        if kind:
            kinds[name] = "all" if kind == 1 else some() if kind < 4 else set()
    return kinds or {"allowed_special": set()}


def outcome(call: Any, *arguments: Any, **keywords: Any) -> list[int] | str:
    """Return the ids, or the token that the error names."""
    try:
        return list(call(*arguments, **keywords))
    except ValueError as refused:
        return str(ast.literal_eval(re.findall(r"(?:special token|contains) ('(?:[^'\\]|\\.)*')", str(refused))[0]))


def test_ids_and_errors_equal_those_of_tiktoken(tokenizer: Tokenizer) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    special = {token: tokenizer.encode(token)[0] for token in SPECIAL}
    ranks = {token: index for index, token in tokenizer.vocab.items() if index not in special.values()}
    theirs = tiktoken.Encoding("gpt2", pat_str=PATTERNS["gpt2"], mergeable_ranks=ranks, special_tokens=special)
    draw = random.Random(0)
    refusals = 0
    for text in texts(draw, 3000):
        chosen = choices(draw)
        wanted = outcome(theirs.encode, text, **chosen)
        refusals += isinstance(wanted, str)
        got = outcome(tokenizer.encode, text, **chosen)
        if isinstance(wanted, str) and wanted in NEITHER:  # one of several at that position, by the order of a set
            assert isinstance(got, str)
        else:
            assert got == wanted, (text, chosen)
        assert tokenizer.encode_ordinary(text) == theirs.encode_ordinary(text)
    assert refusals > 500


def test_all_encoding_methods_follow_the_policy(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """The methods are those of the textbook, and those for batches, streams in random chunks, arrays and files."""
    draw = random.Random(1)
    small = Tokenizer({byte: bytes([byte]) for byte in range(256)}, [], SPECIAL)
    plain = textbook.Tokenizer({byte: bytes([byte]) for byte in range(256)}, [], SPECIAL)
    source, target = tmp_path / "text", tmp_path / "ids"
    for number, text in enumerate(texts(draw, 800)):
        chosen = choices(draw)
        wanted = outcome(small.encode, text, **chosen)
        both = {"allowed_special": chosen.get("allowed_special", set()), **chosen}
        assert isinstance(outcome(plain.encode, text, **both), str) == isinstance(wanted, str), (text, chosen)
        cuts = sorted(draw.choices(range(len(text) + 1), k=draw.randrange(6)))
        chunks = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert outcome(small.encode_iterable, chunks, **chosen) == wanted, (chunks, chosen)
        assert outcome(small.encode_to_numpy, text, **chosen) == wanted
        if isinstance(wanted, str):
            reported = error(small.encode_batch, ["", text], **chosen)
            assert reported.startswith(f"text 1 contains {wanted!a} at character ")
        else:
            assert plain.encode(text, **both) == wanted
            assert small.encode_batch(["", text], **chosen) == [[], wanted]
        if number % 8 == 0:
            source.write_bytes(text.encode("utf-8"))
            target.unlink(missing_ok=True)
            if isinstance(wanted, str):
                assert f"contains {wanted!a} at" in error(small.encode_file, source, target, **chosen)
                assert not target.exists()
            else:
                small.encode_file(source, target, **chosen)
                assert np.fromfile(target, "<u2").tolist() == wanted


def test_arrays_follow_the_policy_on_long_texts(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"the <s> the {END_OF_TEXT} the 日本| " * 2200
    assert len(text) > dispatch.ARRAYS_FROM["encode"]
    for allowed in (set[str](), {"<s>"}, {"日本|", END_OF_TEXT}):
        chosen: dict[str, Choice] = {"allowed_special": allowed, "disallowed_special": ()}
        long = tokenizer.encode(text, **chosen), tokenizer.encode_to_numpy(text, **chosen).tolist()
        batch = tokenizer.encode_batch([text, "<s>"], **chosen)
        with monkeypatch.context() as patch:
            patch.setattr(dispatch, "ARRAYS_FROM", dict.fromkeys(dispatch.ARRAYS_FROM, 1 << 40))
            short = tokenizer.encode(text, **chosen)
            assert batch == [short, tokenizer.encode("<s>", **chosen)]
        assert long == (short, short)
        assert sum(index > 50255 for index in short) == 2200 * len(allowed)


@pytest.mark.parametrize("workers", [1, 2])
def test_file_is_rejected_wherever_the_token_is(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr("bpe_conformance.reference.file_encoding.CHUNK_SIZE", 1 << 12)
    source, target = tmp_path / "text", tmp_path / "ids"
    target.write_bytes(b"earlier")
    for token, around in ((END_OF_TEXT, " words"), ("<|a b|>", " words"), ("a b c", " words"), ("a b", "x")):
        text = around * 2000 + token + around * 2000  # surrounded by x, it is the only place where a file may be cut
        source.write_text(text, encoding="utf-8")
        options: dict[str, Any] = {"allowed_special": {"<s>"}, "disallowed_special": [token], "workers": workers}
        reported = error(tokenizer.encode_file, source, target, **options)
        assert reported.startswith(f"{source}")
        assert f"contains {token!a} at character " in reported
        assert target.read_bytes() == b"earlier"
        options["disallowed_special"] = ()
        tokenizer.encode_file(source, tmp_path / "plain", **options)
        assert np.fromfile(tmp_path / "plain", "<u2").tolist() == tokenizer.encode(
            text, allowed_special={"<s>"}, disallowed_special=()
        )


def test_stream_yields_no_byte_of_a_disallowed_token(tokenizer: Tokenizer) -> None:
    """Whatever the chunks, no byte of a disallowed token has been yielded when the error is raised."""
    text = f"the words <|a b|> {END_OF_TEXT}"
    for token in ("<|a b|>", END_OF_TEXT):
        for cut in range(len(text) + 1):
            ids: list[int] = []
            chosen: dict[str, Choice] = {"allowed_special": "all", "disallowed_special": {token}}
            with pytest.raises(ValueError, match=rf"at character {text.index(token)}, which is disallowed"):
                ids.extend(tokenizer.encode_iterable([text[:cut], text[cut:]], **chosen))
            assert text.partition(token)[0].startswith(tokenizer.decode(ids))


def test_separate_calls_never_form_a_special_token(tokenizer: Tokenizer) -> None:
    for cut in range(1, len(END_OF_TEXT)):
        parts = [END_OF_TEXT[:cut], END_OF_TEXT[cut:]]
        apart = tokenizer.encode(parts[0]) + tokenizer.encode(parts[1])
        assert 50256 not in apart
        assert tokenizer.encode_batch(parts) == [tokenizer.encode(parts[0]), tokenizer.encode(parts[1])]
        assert tokenizer.decode(apart) == END_OF_TEXT
        assert list(tokenizer.encode_iterable(parts)) == [50256]
        refusing = tokenizer.encode_iterable(parts, allowed_special=set())
        with pytest.raises(ValueError, match="disallowed"):
            next(refusing)


def test_decoded_text_can_form_a_special_token(tokenizer: Tokenizer) -> None:
    """Decoded text must be encoded like text from others, because it can contain special tokens."""
    spelled = tokenizer.encode_ordinary(END_OF_TEXT)
    text = tokenizer.decode(spelled)
    assert (text, len(spelled) > 1) == (END_OF_TEXT, True)
    assert tokenizer.encode(text) == [50256]
    assert tokenizer.encode(text, allowed_special=set(), disallowed_special=()) == spelled
    assert "disallowed" in error(tokenizer.encode, text, allowed_special=set())


def test_nested_special_tokens_follow_the_policy() -> None:
    """A disallowed token counts even inside an allowed one; a token that is not recognized hides none."""
    nested = Tokenizer({byte: bytes([byte]) for byte in range(256)}, [], ["<s>", "<s><s>"])
    double = "<s><s>"
    assert nested.encode(double, allowed_special={double}, disallowed_special=()) == [257]
    assert "'<s>' at character 0" in error(nested.encode, double, allowed_special={double})
    assert nested.encode(double, allowed_special={"<s>"}, disallowed_special=()) == [256, 256]
    assert f"{double!a} at character 0" in error(nested.encode, double, allowed_special={"<s>"})


@pytest.mark.parametrize(
    ("keywords", "reported"),
    [
        ({"allowed_special": "<s>"}, "allowed_special is the string '<s>'"),
        ({"disallowed_special": "<s>"}, "disallowed_special is the string '<s>'"),
        ({"allowed_special": 1}, "allowed_special is 1"),
        ({"allowed_special": iter(["<s>"])}, "allowed_special is <"),
        ({"allowed_special": {b"<s>"}}, "allowed_special contains b'<s>'"),
        ({"disallowed_special": [["<s>"]]}, "disallowed_special contains ['<s>']"),
        ({"disallowed_special": [""]}, "disallowed_special contains an empty string"),
    ],
)
def test_invalid_policy_gives_one_line_error(tokenizer: Tokenizer, keywords: dict[str, Any], reported: str) -> None:
    for call, argument in (
        (tokenizer.encode, "a"),
        (tokenizer.encode_batch, ["a"]),
        (tokenizer.encode_iterable, ["a"]),
    ):
        assert reported.replace("the string ", "") in error(call, argument, **keywords).replace("the string ", "")


def test_policies_are_cached_and_bounded(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_module, "POLICIES", 3)
    tokenizer.encode("<s>q")
    size = len(pickle.dumps(tokenizer))
    for number in range(10):
        for _ in range(2):
            assert tokenizer.encode("<s>", allowed_special={"<s>"}, disallowed_special={f"{number}"})[0] > 50256
        assert len(tokenizer._encoders) <= 3
    assert len(pickle.dumps(tokenizer)) == size
    for encoder in pickle.loads(pickle.dumps(list(tokenizer._encoders.values()))):  # as in a worker
        assert encoder.policy.allowed.tokens in (("<s>",), tuple(SPECIAL))


def test_policy_of_a_stream_holds_back_the_minimum() -> None:
    """Ids are yielded while chunks are read, even if a token is disallowed."""
    plain = Tokenizer({byte: bytes([byte]) for byte in range(256)}, [], ["<s>"])
    read = 0

    def chunks() -> Any:
        nonlocal read
        for _ in range(100):
            read += 1
            yield " word"

    ids = plain.encode_iterable(chunks(), allowed_special=set())
    next(ids)
    assert read < 4
