"""Files of other formats are written completely, once and fast."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import stat
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from bpe_conformance.fixtures import PATTERNS, Model, gpt2_model, spell
from bpe_conformance.fixtures.files import write_text
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Pipeline, Split
from bpe_conformance.reference import Tokenizer, textbook
from bpe_conformance.reference.formats import engines, gguf, gpt2, huggingface, oniguruma, tekken
from bpe_conformance.reference.formats import tiktoken as format_tiktoken

BYTES = {byte: bytes([byte]) for byte in range(256)}
SAMPLE = "hello world 123 don't  a\n b. x\ty<|e|> mañana 日本 " * 4
PIECES = [
    *["hello", " ", "  ", "\n", "\r", "1", "12345", "don't", "'S", "'ll", ".", "!!", "<|e|>", "<a b>", "é"],
    *["\u0301", "日本", "\t", "A", "\u00a0", "🦊", " world", "\r\n"],
]
ABC_OTHERWISE = Model({**BYTES, 256: b"bc", 257: b"ab", 258: b"abc"}, ((b"b", b"c"), (b"a", b"b"), (b"ab", b"c")))


def texts(seed: str, count: int) -> list[str]:
    draw = random.Random(seed)
    return ["".join(draw.choice(PIECES) for _ in range(draw.randrange(12))) for _ in range(count)]


def refused(action: Callable[[], object]) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestGPT2:
    def files(self, folder: Path, vocab: str, merges: str) -> tuple[Path, Path]:
        paths = folder / "vocab.json", folder / "merges.txt"
        for path, text in zip(paths, (vocab, merges), strict=True):
            path.write_bytes(text.encode("utf-8"))
        return paths

    @pytest.mark.parametrize("header", ["#version: 0.2\n", "#version: 0.2 - Trained by x\r\n", "", "\ufeff"])
    @pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    def test_read_merges_accepts_header_and_line_ends(
        self, tmp_path: Path, header: str, end: str, newline: str
    ) -> None:
        file = tmp_path / "merges.txt"
        file.write_bytes((header + newline.join(["# #", "Ġ t", "## a", "#v e"]) + end).encode())
        wanted = [(b"#", b"#"), (b" ", b"t"), (b"##", b"a"), (b"#v", b"e")]
        assert gpt2.read_merges(file) == wanted

    @pytest.mark.parametrize("text", ["", "\n", "#version: 0.2", "#version: 0.2\n"])
    def test_read_merges_accepts_empty_file(self, tmp_path: Path, text: str) -> None:
        file = tmp_path / "merges.txt"
        file.write_text(text)
        assert gpt2.read_merges(file) == []

    @pytest.mark.parametrize(
        ("text", "line", "what"),
        [
            ("#version: 0.2\na b\na\n", 3, "'a' is not a merge"),
            ("a b\nabc d e\n", 2, "'abc d e' is not a merge"),
            ("a b\n\nc d\n", 2, "'' is not a merge"),
            ("a b\nc \n", 2, "'c ' is not a merge"),
            ("a b\na b\n", 2, "'a b' is a duplicate of merge 0"),
            ("a b\n日 c\n", 2, "is not a character of GPT-2's byte map"),
        ],
    )
    def test_malformed_merges_are_rejected(self, tmp_path: Path, text: str, line: int, what: str) -> None:
        file = tmp_path / "merges.txt"
        file.write_bytes(text.encode())
        message = refused(lambda: gpt2.read_merges(file))
        assert message.startswith(f"{file}:{line}: ")
        assert what in message

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ('{\n"a": 0,\n', ":3: not JSON"),
            ("[]", ":1: expected an object"),
            ("7", ":1: expected an object"),
            ("", ":1: not JSON"),
            ('{"a": "0"}', ": the id of 'a' is '0'"),
            ('{"a": true}', ": the id of 'a' is True"),
            ('{"a": 0, "a": 1}', ": duplicate key 'a'"),
            ('{"a": 0, "b": 0}', ": the id 0 belongs to 'a' and to 'b'"),
            ('{"\\ud800": 0}', "lone surrogate"),
            ("[" * 100_000, "nested deeper than 64 levels"),
        ],
    )
    def test_malformed_vocabulary_is_rejected(self, tmp_path: Path, text: str, what: str) -> None:
        file = tmp_path / "vocab.json"
        file.write_text(text)
        message = refused(lambda: gpt2.read_vocab(file))
        assert message.startswith(str(file))
        assert what in message

    def test_missing_or_non_utf8_file_is_reported(self, tmp_path: Path) -> None:
        file = tmp_path / "vocab.json"
        assert refused(lambda: gpt2.read_vocab(file)).startswith(f"{file}: cannot be read: No such file")
        file.write_bytes(b'{\n"\xff": 0}')
        assert refused(lambda: gpt2.read_vocab(file)).startswith(f"{file}:2: not UTF-8 at byte 3")

    def test_plain_special_tokens_are_read_as_text(self, tmp_path: Path) -> None:
        entries = {spell(token): index for index, token in BYTES.items()} | {
            "<a b>": 256,
            "日本": 257,
            "<|e|>": 258,
        }
        paths = self.files(tmp_path, json.dumps(entries), "")
        tokenizer = Tokenizer.from_files(*paths, ["<a b>", "日本", "<|e|>"])
        assert tokenizer.encode("日本<a b><|e|>") == [257, 256, 258]

    def test_written_special_tokens_are_spelled(self, tmp_path: Path) -> None:
        gpt2.write(tmp_path, {**BYTES, 256: b"<a b>"}, [])
        assert json.loads((tmp_path / "vocab.json").read_text("utf-8"))["<aĠb>"] == 256
        assert gpt2.read_vocab(tmp_path / "vocab.json") == {**BYTES, 256: b"<a b>"}

    def test_two_ids_for_the_same_bytes_are_refused(self, tmp_path: Path) -> None:
        message = refused(lambda: Tokenizer({**BYTES, 256: b"a"}, []).save(tmp_path))
        assert message == "the ids 97 and 256 have the same bytes, b'a'; the format has one id for a token"
        assert not list(tmp_path.iterdir())

    def test_files_that_do_not_match_are_rejected(self, tmp_path: Path) -> None:
        entries = {spell(token): index for index, token in BYTES.items()}
        paths = self.files(tmp_path, json.dumps(entries), "a b\n")
        assert "lacks b'ab', the result of merge 0" in refused(lambda: Tokenizer.from_files(*paths))

    def test_hugging_face_and_reference_load_each_others_files(self, tmp_path: Path) -> None:
        tokenizers = pytest.importorskip("tokenizers")
        ours = Tokenizer.train(SAMPLE, 300)
        ours.save(tmp_path)
        paths = str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt")
        theirs = tokenizers.ByteLevelBPETokenizer.from_file(*paths)
        for text in texts("gpt2", 300):
            assert theirs.encode(text).ids == ours.encode(text)
        theirs = tokenizers.ByteLevelBPETokenizer()
        theirs.train_from_iterator([SAMPLE], 300, show_progress=False)
        theirs.save_model(str(tmp_path))
        loaded = Tokenizer.from_files(*paths)
        for text in texts("gpt2", 300):
            assert theirs.encode(text).ids == loaded.encode(text)


class TestTiktoken:
    @pytest.mark.slow
    def test_gpt2_ranks_are_r50k(self, tmp_path: Path) -> None:
        file = tmp_path / "r50k_base.tiktoken"
        format_tiktoken.write(file, gpt2_model())
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        assert digest == "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"
        assert format_tiktoken.read(file, {"<|endoftext|>": 50256}) == gpt2_model()

    @pytest.mark.parametrize("name", PATTERNS)
    def test_tiktoken_loads_ours(self, name: str, tmp_path: Path) -> None:
        tiktoken = pytest.importorskip("tiktoken")
        load = pytest.importorskip("tiktoken.load")
        ours = Tokenizer.train(SAMPLE, 310, ["<|e|>", "<a b>"], pattern=name)
        file = tmp_path / "x.tiktoken"
        format_tiktoken.write(file, ours.model)
        ranks = load.load_tiktoken_bpe(str(file))
        special = {"<|e|>": 256, "<a b>": 257}
        assert ranks == format_tiktoken.read_ranks(file)
        theirs = tiktoken.Encoding("x", pat_str=PATTERNS[name], mergeable_ranks=ranks, special_tokens=special)
        back = Tokenizer.from_model(format_tiktoken.read(file, special, name))
        assert back.merges == ours.merges
        for text in texts(name, 500):
            assert theirs.encode(text, allowed_special="all") == ours.encode(text) == back.encode(text)

    @pytest.mark.slow
    def test_tiktoken_encodes_equally_or_table_is_rejected(self, tmp_path: Path) -> None:
        tiktoken = pytest.importorskip("tiktoken")
        draw, file, written = random.Random(0), tmp_path / "x.tiktoken", 0
        for _ in range(600):
            tokens, merges = [b"a", b"b", b"c"], []
            for _ in range(draw.randrange(1, 9)):
                pair = draw.choice(tokens), draw.choice(tokens)
                if pair[0] + pair[1] not in tokens:
                    tokens.append(pair[0] + pair[1])
                    merges.append(pair)
            model = Model(BYTES | dict(enumerate(tokens[3:], start=256)), tuple(merges))
            try:
                format_tiktoken.write(file, model)
            except ValueError:
                continue
            written += 1
            ranks = format_tiktoken.read_ranks(file)
            theirs = tiktoken.Encoding("x", pat_str=r"[\s\S]+", mergeable_ranks=ranks, special_tokens={})
            ours = Tokenizer.from_model(model)
            for _ in range(20):
                text = "".join(draw.choice("abc") for _ in range(draw.randrange(1, 14)))
                assert theirs.encode(text) == ours.encode(text), (merges, text)
        assert 100 < written < 600

    @pytest.mark.parametrize(
        ("model", "what"),
        [
            (Model({**BYTES, 256: b"a"}, ()), "two ids have the bytes b'a'"),
            (Model({**BYTES, 256: b"zz"}, ()), "the merges do not follow"),
            (Model({**BYTES, 256: b"zzz"}, ()), "the merges do not follow"),
            (
                Model({**BYTES, 256: b"abc", 257: b"ab"}, ((b"a", b"b"), (b"ab", b"c"))),
                "the merges do not follow",
            ),
            (ABC_OTHERWISE, "the merges do not follow"),
            (Model(BYTES, (), ("a",)), "a byte is missing or is a special token"),
        ],
    )
    def test_table_that_ranks_cannot_represent_is_rejected(self, tmp_path: Path, model: Model, what: str) -> None:
        file = tmp_path / "x"
        assert what in refused(lambda: format_tiktoken.write(file, model))
        assert not file.exists()

    @pytest.mark.parametrize(
        ("text", "line", "what"),
        [
            ("YQ== 0\nYg==\n", 2, "is not base64, a space and a rank"),
            ("YQ== 0\nYg== x\n", 2, "is not base64, a space and a rank"),
            ("Y!== 0\n", 1, "is not base64: "),
            ("YR== 0\n", 1, "is not canonical base64: bits are left over"),
            ("YQ== 0\nYg== 0\n", 2, "is a duplicate"),
            ("YQ== 0\nYQ== 1\n", 2, "is a duplicate"),
            ("YQ== ²\n", 1, "is not base64, a space and a rank"),
        ],
    )
    def test_malformed_ranks_are_rejected(self, tmp_path: Path, text: str, line: int, what: str) -> None:
        file = tmp_path / "x.tiktoken"
        file.write_bytes(text.encode())
        message = refused(lambda: format_tiktoken.read_ranks(file))
        assert message.startswith(f"{file}:{line}: ")
        assert what in message

    def test_a_taken_id_is_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "x.tiktoken"
        file.write_bytes(b"%s 0\n" % base64.b64encode(b"a"))
        assert "the id 0 of '<e>' belongs to b'a'" in refused(lambda: format_tiktoken.read(file, {"<e>": 0}))


class TestHuggingFace:
    @pytest.mark.parametrize("name", PATTERNS)
    def test_hugging_face_loads_ours(self, name: str, tmp_path: Path) -> None:
        tokenizers = pytest.importorskip("tokenizers")
        ours = Tokenizer.train(SAMPLE, 310, ["<|e|>", "<a b>"], pattern=name)
        file = tmp_path / "tokenizer.json"
        huggingface.write(file, ours.model)
        theirs = tokenizers.Tokenizer.from_file(str(file))
        back = Tokenizer.from_model(huggingface.read(file))
        assert (back.vocab, back.merges, back.special_tokens) == (
            ours.vocab,
            ours.merges,
            ours.special_tokens,
        )
        assert PATTERNS[back.pattern] == PATTERNS[name]
        for text in texts(name, 700):
            ids = ours.encode(text)
            assert theirs.encode(text, add_special_tokens=False).ids == ids == back.encode(text)
            assert theirs.decode(ids, skip_special_tokens=False) == text

    @pytest.mark.slow
    def test_gpt2_round_trips(self, tmp_path: Path) -> None:
        file = tmp_path / "tokenizer.json"
        huggingface.write(file, gpt2_model())
        assert huggingface.read(file) == gpt2_model()

    def test_hugging_face_loads_tables_in_any_order_of_ids(self, tmp_path: Path) -> None:
        tokenizers = pytest.importorskip("tokenizers")
        draw, file = random.Random(0), tmp_path / "tokenizer.json"
        for _ in range(60):
            tokens, merges = [b"a", b"b", b"c"], []
            for _ in range(draw.randrange(1, 9)):
                pair = draw.choice(tokens), draw.choice(tokens)
                if pair[0] + pair[1] not in tokens:
                    tokens.append(pair[0] + pair[1])
                merges.append(pair)
            draw.shuffle(merges)
            every = list(dict.fromkeys([*BYTES.values(), *tokens]))
            model = Model(dict(zip(draw.sample(range(999), len(every)), every, strict=True)), tuple(merges))
            huggingface.write(file, model)
            theirs, ours = tokenizers.Tokenizer.from_file(str(file)), Tokenizer.from_model(model)
            assert huggingface.read(file).merges == tuple(dict.fromkeys(merges))
            for _ in range(20):
                text = "".join(draw.choice("abc ") for _ in range(draw.randrange(14)))
                assert theirs.encode(text).ids == ours.encode(text), (merges, text)

    @pytest.mark.parametrize("split", [False, True])
    def test_read_loads_files_of_hugging_face(self, split: bool, tmp_path: Path) -> None:
        tokenizers = pytest.importorskip("tokenizers")
        theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
        step: Any = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not split)
        if split:
            expression = tokenizers.Regex(r"\p{L}+|\s+")
            step = tokenizers.pre_tokenizers.Sequence([tokenizers.pre_tokenizers.Split(expression, "isolated"), step])
        theirs.pre_tokenizer = step
        theirs.decoder = tokenizers.decoders.ByteLevel()
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=320,
            special_tokens=["<|e|>", "<a b>"],
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        theirs.train_from_iterator([SAMPLE], trainer)
        theirs.add_tokens(["日本 "])
        file = tmp_path / "tokenizer.json"
        theirs.save(str(file))
        ours = Tokenizer.from_model(huggingface.read(file))
        assert ours.pattern == (r"\p{L}+|\s+" if split else "gpt2")
        for text in texts("theirs", 700):
            assert theirs.encode(text).ids == ours.encode(text), text

    def document(self, path: Path) -> Any:
        huggingface.write(path, Tokenizer.train("ab ab", 258, ["<e>"]).model)
        return json.loads(path.read_text("utf-8"))

    @pytest.mark.parametrize(
        ("place", "value", "what"),
        [
            ("normalizer", {"type": "Lowercase"}, "normalizer: 'Lowercase' is not supported; expected NFC, NFD"),
            ("normalizer", {"type": "Sequence", "normalizers": [{"type": "Replace"}]}, "'Replace' is not supported"),
            ("truncation", {"max_length": 9}, "truncation is set"),
            ("model", None, "model: expected an object"),
            ("model.type", "WordPiece", "the model is 'WordPiece'; expected BPE"),
            ("model.dropout", 0.1, "dropout is set"),
            ("model.byte_fallback", True, "byte_fallback is set"),
            ("model.vocab", [], "model.vocab: expected an object"),
            ("model.vocab.a", "x", "the id of 'a' is 'x'"),
            ("model.vocab.<e>", 9, "the id 9 belongs to"),
            (
                "model.vocab.<e>",
                300,
                "the id of '<e>' is 256, but tokenizers gives it 300; put it into",
            ),
            ("model.merges", [["a"]], "model.merges[0]: 'a' is not a merge"),
            ("model.merges", [7], "model.merges[0] is not a pair"),
            ("pre_tokenizer", None, "pre_tokenizer: None is not supported; write it as Split, Digits, Punctuation or"),
            ("pre_tokenizer.type", "Whitespace", "pre_tokenizer: 'Whitespace' is not supported; write it as"),
            ("pre_tokenizer", {"type": "Digits", "individual_digits": True}, "pre_tokenizer: expected a ByteLevel"),
            ("pre_tokenizer", {"type": "Punctuation", "behavior": "x"}, "pre_tokenizer: the behavior is 'x'; expected"),
            ("pre_tokenizer", {"type": "Split", "pattern": {}, "behavior": "Removed", "invert": True}, "a Regex or a"),
            ("added_tokens", [{"id": 258, "content": " x", "lstrip": True}], "added_tokens: ' x' has lstrip"),
            ("added_tokens", [{"id": 258, "content": "x ", "rstrip": True}], "added_tokens: 'x ' has lstrip or rstrip"),
            ("added_tokens", [{"id": 256, "content": ""}], "added_tokens[0]: expected a non-empty content"),
            ("added_tokens", [{"content": "x"}], "added_tokens[0]: expected a non-empty content"),
            ("added_tokens", [{"id": 300, "content": " "}], "the id of ' ' is 300, but tokenizers gives it 258"),
            ("added_tokens", [7], "added_tokens[0]: expected an object"),
            ("added_tokens", [{"id": 256, "content": "<e>"}, {"id": 258, "content": "<e>"}], "'<e>' is a duplicate"),
        ],
    )
    def test_other_than_plain_byte_level_bpe_is_rejected(
        self, tmp_path: Path, place: str, value: Any, what: str
    ) -> None:
        file = tmp_path / "tokenizer.json"
        document = self.document(file)
        *folders, last = place.split(".")
        inner = document
        for folder in folders:
            inner = inner[folder]
        inner[last] = value
        file.write_text(json.dumps(document))
        message = refused(lambda: huggingface.read(file))
        assert message.startswith(f"{file}: ")
        assert what in message

    @pytest.mark.parametrize(
        ("normalizer", "content", "single_word", "is_key", "is_refused"),
        [
            (None, "<e>", True, True, True),
            (None, "<e>", True, False, False),
            (None, "<e>", False, True, False),
            ("NFC", "<e>", True, True, True),
            ("NFC", "<K>", False, True, True),  # as the normal form of U+212A
            ("NFC", "<K>", False, False, False),
            ("NFC", "<e>", False, True, False),
            ("NFKC", "<e>", False, True, True),
        ],
    )
    def test_an_added_token_that_ignore_merges_can_look_up_is_refused(
        self, normalizer: str | None, content: str, single_word: bool, is_key: bool, is_refused: bool, tmp_path: Path
    ) -> None:
        vocab = {**BYTES, 256: b"ab", 257: content.encode()}
        document = json.loads(huggingface.rendered(Model(vocab, ((b"a", b"b"),), (content,))))
        document["normalizer"] = normalizer and {"type": normalizer}
        document["model"]["ignore_merges"] = True
        document["added_tokens"][0]["single_word"] = single_word
        if not is_key:
            del document["model"]["vocab"][content]
        file = tmp_path / "tokenizer.json"
        file.write_text(json.dumps(document))
        if is_refused:
            assert f"ignore_merges can look up '{content}', which is a key" in refused(lambda: huggingface.read(file))
        else:
            assert huggingface.read(file).vocab == vocab

    def test_read_accepts_merges_as_strings(self, tmp_path: Path) -> None:
        file = tmp_path / "tokenizer.json"
        document = self.document(file)
        document["model"]["merges"] = [" ".join(pair) for pair in document["model"]["merges"]]
        file.write_text(json.dumps(document))
        assert huggingface.read(file).merges == ((b"a", b"b"),)

    def test_invalid_json_is_rejected(self, tmp_path: Path) -> None:
        file = tmp_path / "tokenizer.json"
        file.write_text('{\n"model": }')
        assert refused(lambda: huggingface.read(file)).startswith(f"{file}:2: not JSON")
        file.write_text("[]")
        assert refused(lambda: huggingface.read(file)) == f"{file}: expected an object"

    @pytest.mark.parametrize(
        ("model", "what"),
        [
            (Model({**BYTES, 256: b"a"}, ()), "the ids 97 and 256 have the same bytes, b'a'"),
            (Model(BYTES, (), ("<e>",)), "'<e>' is not in the vocabulary"),
            (Model({**BYTES, 256: "é".encode()}, (), ("é",)), "is the spelling of another token"),
            (Model(BYTES, (), (" ",)), "' ' is also an ordinary token"),
            (Model({**BYTES, 256: b" a"}, ((b" ", b"a"),), (" a",)), "' a' is also an ordinary token"),
            (Model(BYTES, (), (), r"\d{1,3}+|\s"), "is not possessive in tokenizers"),
        ],
    )
    def test_table_that_the_format_cannot_represent_is_rejected(self, tmp_path: Path, model: Model, what: str) -> None:
        file = tmp_path / "tokenizer.json"
        assert what in refused(lambda: huggingface.write(file, model))
        assert not file.exists()


class TestOniguruma:
    """Expressions of `tokenizer.json`."""

    TEXT = "".join(PIECES * 2) + "".join(
        random.Random(0).choices([*PIECES, "²", "\u09f4", "\u200d", "_", "-", "Ⅷ", "ﬁ", "ſ", "K", "۳"], k=3000)
    )

    @pytest.mark.parametrize(
        ("expression", "translation"),
        [
            (r"\p{N}{1,3}+|\s+$", r"(?:\p{N}{1,3})+|\s+(?m:$)"),
            (r"((a|b){1,2}+c|[a-z]){2,3}+", r"(?:((?:(a|b){1,2})+c|[a-z]){2,3})+"),
            (r"\w+|\W", r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}²³¹¼½¾]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}²³¹¼½¾]"),
            (r"[\h_]+|[^\W\d]", r"[[0-9A-Fa-f]_]+|[^[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]\d]"),
            *[(text, text) for name, text in PATTERNS.items() if name != "cl100k"],
            *[
                (text, text)
                for text in (r" ?[^(\s|[.,!?…。，、|_])]+", r"[\p{Han}]+|[^\r\n&&[^\p{Han}]]++", "", "|a", r"(?=b)")
            ],
            *[
                (text, text)
                for text in (r"(?>\p{Ll}|b)+", r"\u65e5|\x41", r"(?<=a)b|.", r"[!-/:-~]+", r"'(?i:[sdmt]|ll|ve|re)")
            ],
        ],
    )
    def test_is_translated_where_that_is_exact(self, expression: str, translation: str) -> None:
        tokenizers = pytest.importorskip("tokenizers")
        assert oniguruma.translated(expression) == translation
        assert oniguruma.translated(translation) == translation
        splitter = tokenizers.pre_tokenizers.Split(tokenizers.Regex(expression), "isolated")
        book = textbook.cut_at(self.TEXT, textbook.find_matches(self.TEXT, translation), "Isolated")
        assert [piece for piece, _ in splitter.pre_tokenize_str(self.TEXT)] == book

    @pytest.mark.parametrize(
        "expression",
        [
            *[
                "^a",
                "a{3}?",
                "a++*",
                "(?i:st)",
                "(?i:i)",
                "(?i:é)",
                "(?<n>a)",
                r"\b",
                "[]",
                "[^]",
                "[[:alpha:]]",
                "(?s:.)",
            ],
            *[
                "a{,3}",
                "{",
                r"\p{IsL}",
                r"\p{^L}",
                "(",
                "a)",
                "[a--b]",
                r"\R",
                r"\1",
                "(?#a)",
                "[a",
                "a{2}{3}",
                "*",
                "\\",
            ],
        ],
    )
    def test_is_refused_in_one_line_elsewhere(self, expression: str) -> None:
        assert refused(lambda: oniguruma.translated(expression))


class TestTekken:
    def document(self) -> Any:
        tokens = [*BYTES.values(), b"ab", b"abc", b"zz"]
        vocab = [
            {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
            for rank, token in enumerate(tokens)
        ]
        config = {"pattern": PATTERNS["llama3"], "default_vocab_size": 268, "default_num_special_tokens": 10}
        return {"config": config, "vocab": vocab}

    def test_ids_follow_the_special_tokens_and_only_so_many_ranks_count(self, tmp_path: Path) -> None:
        file = tmp_path / "tekken.json"
        file.write_text(json.dumps(self.document()))
        model = tekken.read(file)
        assert model == Model(
            {10 + byte: bytes([byte]) for byte in range(256)} | {266: b"ab", 267: b"abc"},
            ((b"a", b"b"), (b"ab", b"c")),
            (),
            "cl100k-2023",  # llama3 is another name of its expression
        )

    def test_a_token_that_no_merge_builds_is_found_whole(self, tmp_path: Path) -> None:
        document = self.document()
        document["vocab"][256]["token_bytes"] = base64.b64encode(b"xyz").decode()
        file = tmp_path / "tekken.json"
        file.write_text(json.dumps(document))
        tokenizer = Tokenizer.from_model(tekken.read(file))
        assert tokenizer.encode("xyz xyz") == [266, 42, 130, 131, 132]

    @pytest.mark.parametrize(
        ("change", "what"),
        [
            (lambda document: document["config"].pop("pattern"), "expected `config`, with pattern"),
            (lambda document: document["config"].update(default_vocab_size=999), "and as many entries of `vocab`"),
            (lambda document: document["vocab"][3].update(rank=4), "vocab[3] is {"),
            (lambda document: document["vocab"][3].update(token_bytes="!"), "vocab[3]: '!' is not base64"),
            (
                lambda document: document["vocab"][256].update(token_bytes="YQ=="),
                "vocab[256]: the token b'a' is empty or",
            ),
            (
                lambda document: document["vocab"][3].update(token_bytes="enp6"),
                "there is no rank for the byte b'\\x03'",
            ),
            (lambda document: document["config"].update(pattern="(a"), "the pattern '(a' is not a regular expression"),
        ],
    )
    def test_malformed_file_is_refused(self, change: Callable[[Any], Any], what: str, tmp_path: Path) -> None:
        document = self.document()
        change(document)
        file = tmp_path / "tekken.json"
        file.write_text(json.dumps(document))
        assert what in refused(lambda: tekken.read(file))


class TestGGUF:
    MODEL = Model(
        {**BYTES, 256: b"ab", 258: b"<e>", 259: b"ab"},
        ((b"a", b"b"),),
        ("<e>", "ab"),
        pipeline=Pipeline(
            added_tokens=(AddedToken("<e>"), AddedToken("ab", id=259)),
            steps=(Split(PATTERNS["llama3"]), ByteLevel(split=False)),
            lookup="whole",
        ),
    )

    def test_round_trips_and_is_what_the_package_reads_and_writes(self, tmp_path: Path) -> None:
        file = tmp_path / "model.gguf"
        gguf.write(file, self.MODEL)
        assert gguf.read(file) == self.MODEL
        package = pytest.importorskip("gguf")
        fields = package.GGUFReader(file).fields
        assert fields["tokenizer.ggml.pre"].contents() == "llama-bpe"
        assert fields["tokenizer.ggml.tokens"].contents()[255:] == ["ÿ", "ab", "[PAD257]", "<e>", "ab"]
        assert fields["tokenizer.ggml.token_type"].contents()[255:] == [1, 1, 5, 3, 3]
        assert fields["tokenizer.ggml.merges"].contents() == ["a b"]
        writer = package.GGUFWriter(tmp_path / "theirs.gguf", "llama")
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("dbrx")
        writer.add_array("other", [1.5, 2.5])
        writer.add_bool("more", True)
        writer.add_token_list(fields["tokenizer.ggml.tokens"].contents()[:257])
        writer.add_token_types([1] * 257)
        writer.add_token_merges(["a b"])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        # llama3 and cl100k-2023 are two names of one expression.
        theirs = gguf.read(tmp_path / "theirs.gguf")
        assert (dict(theirs.vocab), theirs.expression) == ({**BYTES, 256: b"ab"}, PATTERNS["llama3"])

    @pytest.mark.parametrize("name", ["gpt2", "llama3", "qwen2", "o200k"])
    def test_plain_models_round_trip(self, name: str, tmp_path: Path) -> None:
        model = Tokenizer.train(SAMPLE, 300, ["<|e|>"], pattern=name).model
        gguf.write(tmp_path / "model.gguf", model)
        back = gguf.read(tmp_path / "model.gguf")
        assert (dict(back.vocab), back.merges, back.special_tokens) == (model.vocab, model.merges, model.special_tokens)
        assert back.expression == model.expression
        assert "llama.cpp has no pre-tokenizer" in refused(
            lambda: gguf.write(tmp_path / "x", replace(model, pattern="none"))
        )
        assert not (tmp_path / "x").exists()

    def test_the_converter_recognises_gpt2_and_no_other_model(self) -> None:
        model = gpt2_model()
        digest, names = gguf.recognised(model, textbook.Tokenizer(model.vocab, model.merges, ()).encode)
        # of convert_hf_to_gguf.py, for openai-community/gpt2
        assert digest == "3ce83efda5659b07b1ad37ca97ca5797ea4285d9b9ab0dc679e4a720c9da7454"
        assert names == {"gpt-2": None}
        assert gguf.recognised(self.MODEL, lambda text: [1])[1] == {}

    def test_a_name_has_the_id_with_which_its_text_begins(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = Tokenizer.train(SAMPLE, 300, ["<|e|>"]).model
        first = model.ids[b"<|e|>"]
        plain, with_bos = (hashlib.sha256(str(ids).encode()).hexdigest()[:8] for ids in ([1, 2], [first, 1, 2]))
        hashes = {"plain": [plain], "other": ["00000000"], "with-bos": ["11111111", with_bos]}
        (tmp_path / "hashes.yaml").write_text(f"text: a\nhashes: {json.dumps(hashes)}\n", "utf-8")
        monkeypatch.setattr(gguf, "_CONVERTER", tmp_path / "hashes.yaml")
        assert gguf.recognised(model, lambda text: [1, 2])[1] == {"plain": None, "with-bos": first}
        above = replace(model, vocab={index + 300: token for index, token in model.vocab.items()}, special_tokens=())
        assert gguf.recognised(above, lambda text: [1, 2])[1] == {"plain": None, "with-bos": first}

    def test_the_tests_of_llamacpp_round_trip(self, tmp_path: Path) -> None:
        expected = [(text, list(text.encode())) for text in ("", "a", "\n", "\n\n b\0", "\r\n", "é", " __ggml", "")]
        files = gguf.tests([*expected, ("a __ggml_vocab_test__", [1])])
        assert files[".inp"].startswith("\n__ggml_vocab_test__\na\n__ggml_vocab_test__\n\n\n__ggml_vocab_test__\n")
        assert files[".out"].startswith("\n 97\n 10\n")
        for suffix, text in files.items():
            write_text(tmp_path / f"m.gguf{suffix}", text)
        assert gguf.read_tests(tmp_path / "m.gguf") == expected
        for wrong in (" 1\n", " 1 b\n" * len(expected)):
            write_text(tmp_path / "m.gguf.out", wrong)
            message = refused(lambda: gguf.read_tests(tmp_path / "m.gguf"))
            assert "m.gguf.out: expected a line of ids for each of the 8 texts of .inp" in message

    def test_malformed_file_is_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "model.gguf"
        gguf.write(file, self.MODEL)
        data = file.read_bytes()
        for old, new, what in [
            (data, b"GGML", "expected GGUF and the version 2 or 3"),
            (data[-3:], b"", "ends in the middle of a value"),
            (b"llama-bpe", b"llama-spm", "tokenizer.ggml.pre is 'llama-spm'; supported are gpt-2, mpt"),
            (b"\4\0\0\0\0\0\0\0gpt2", b"\4\0\0\0\0\0\0\0bert", "tokenizer.ggml.model is 'bert'"),
            (b"ggml.merges", b"ggml.margas", "tokenizer.ggml.merges is missing"),
            (b"\3\0\0\0\0\0\0\0a b", b"\3\0\0\0\0\0\0\0a c", "merges[0]: the vocabulary lacks b'ac'"),
            (b"\3\0\0\0\0\0\0\0a b", b"\xff" * 8 + b"a b", "ends in the middle of a value"),
            (gguf._value("llama-bpe"), gguf._value(7), "tokenizer.ggml.pre is missing, or of another type"),
            (gguf._value(["a b"]), gguf._value([7]), "tokenizer.ggml.merges is missing, or of another type"),
            (b"<e>", b"<\xff>", "tokenizer.ggml.tokens: expected UTF-8"),
        ]:
            assert data.count(old) == 1
            file.write_bytes(data.replace(old, new))
            assert what in refused(lambda: gguf.read(file))


def test_file_is_written_completely_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    write_text(file, "old\n")
    with pytest.raises(UnicodeEncodeError):
        write_text(file, "new \ud800")
    assert file.read_bytes() == b"old\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_repeated_merge_is_written_once(tmp_path: Path) -> None:
    bytes_ = {byte: bytes([byte]) for byte in range(256)}
    tokenizer = Tokenizer({**bytes_, 256: b"ab"}, [(b"a", b"b"), (b"a", b"b")])
    tokenizer.save(tmp_path)
    loaded = Tokenizer.from_files(tmp_path / "vocab.json", tmp_path / "merges.txt")
    assert loaded.encode("abab") == tokenizer.encode("abab") == [256, 256]


def test_a_single_step_is_written_without_a_sequence_as_in_published_files() -> None:
    """gigatoken, for example, reads `ByteLevel`, and no sequence of it alone."""
    kinds = []
    for steps in ((ByteLevel(),), (Split("-"), ByteLevel(split=False))):
        pipeline = Pipeline(normalizer=("NFC",), steps=steps)
        document = huggingface.document(replace(gpt2_model(), special_tokens=(), pipeline=pipeline))
        kinds.append((document["normalizer"]["type"], document["pre_tokenizer"]["type"]))
    assert kinds == [("NFC", "ByteLevel"), ("NFC", "Sequence")]


def test_many_added_and_special_tokens_load_fast(tmp_path: Path) -> None:
    special = tuple(f"<added {number}>" for number in range(1_000))
    vocab = {**{byte: bytes([byte]) for byte in range(256)}, **{300 + i: one.encode() for i, one in enumerate(special)}}
    data = json.loads(huggingface.rendered(Model(vocab, (), special)))
    for place, token in enumerate(data["added_tokens"]):
        token["normalized"] = place >= 2
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    assert huggingface.read(file).special_tokens == special
    for token in data["added_tokens"][:500]:
        token["normalized"] = False
    file.write_text(json.dumps(data), encoding="utf-8")
    pipeline = huggingface.read(file).pipeline  # too many to look for overlaps
    assert pipeline is not None
    assert [token.normalized for token in pipeline.added_tokens] == [False] * 500 + [True] * 500


def test_engines_are_compared_on_every_sequence_of_three_kinds_of_characters() -> None:
    compared: list[str] = []

    def split(text: str) -> list[str]:
        compared.append(text)
        return textbook.split(text, r"\w+|\W")

    engines._compare("x", r"\w+|\W", split, list)
    kinds = "".join(kind if (kind := unicodedata.category(char)[0]) in "LNP" else "Z" for char in compared[0])
    assert {"".join(three) for three in product("LNPZ", repeat=3)} <= {kinds[at : at + 3] for at in range(len(kinds))}
