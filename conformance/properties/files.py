"""Properties of `save`, `from_files` and `from_tokenizer_json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from shutil import copytree
from typing import Any

import regex
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from bpe_conformance.fixtures import PATTERNS, Merge, Model, gpt2_files, gpt2_model, read_model
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Pipeline, Split

from ..answer import Accepted, Answer, AnyError, Changed, Ids, Refusal, Unchanged
from ..implementation.implementation import Implementation
from ..implementation.output import scratch_folder
from ..implementation.proxy import CallFailed, TimedOut, TokenizerProxy
from ..operations import Decode, Encode, Expected, Load, OnlyLoad, Question, Save
from ..operations.setting import expression, pieces
from ..outcome import Dependence, Expectation, Mismatch
from . import asking, strategies
from .asking import (
    Instance,
    ask,
    contained,
    correct_answer,
    equals_oracle,
    is_correct,
    is_late,
    is_lost,
    load,
    undisturbed,
)
from .engine import Drawn, Fixed, Property, Verdicts
from .scale import Texts, long_tokens, one_merge_per_byte

LOADING = ("from_files", "encode")
SAVING = ("save", "from_files", "encode")
LOADING_JSON = ("from_tokenizer_json", "encode")
PLAIN_SPECIALS = [token for token in strategies.SPECIALS if all("!" <= char <= "~" for char in token)]
"""The spelling of other special tokens in files is open (FILE-SPECIAL-2)."""


def _loadings(implementation: Implementation) -> SearchStrategy[Question[Load]]:
    def build(question: Question[Encode], options: tuple[str, str, bool, str]) -> Question[Load]:
        named = zip(("key_order", "newline", "ascii", "json_style"), options, strict=True)
        return Question(Load(question.operation.text, tuple(named)), question.model)

    styles = ("spaced", "compact", "escaped", "loose")
    options = list(product(("ids", "reversed", "sorted"), ("lf", "crlf"), (True, False), styles))
    questions = strategies.mixed_encodings(implementation, PLAIN_SPECIALS)
    return st.builds(build, questions, st.integers(0, len(options) - 1).map(options.__getitem__))


@Drawn("law-load", "FILE-LOAD-1", LOADING, _loadings, 20)
def loaded(implementation: Implementation, question: Question[Load]) -> Verdicts:
    """A tokenizer that is loaded from files encodes according to its table."""
    right = (correct_answer(question, implementation.conventions),)
    with_crlf = dict(question.operation.options).get("newline") == "crlf"  # which a reader may reject (FILE-LINES-2)
    expected = Expected({"": (*right, AnyError("any")) if with_crlf else right})
    yield asking.judged(implementation, question, expected, "FILE-LOAD-1")


@Fixed("law-loaded-as-built", "LAW-WAYS-1", LOADING)
def two_merges_of_one_token(implementation: Implementation) -> Verdicts:
    """Files with two merges that make one token are rejected, or give the ids that the constructor's merges give."""
    merges = [["a", "b"], ["b", "c"], ["ab", "c"], ["a", "bc"], ["x", "y"]]
    model = read_model({"merges": merges, "remove": [259]})
    asked = Question(Load("abc xy"), model)
    built, loaded = (ask(implementation, one) for one in (Question(Encode("abc xy"), model), asked))
    if isinstance(built, Ids) and isinstance(loaded, Ids) and built != loaded:  # which ids is open: MERGE-TABLE-1
        yield Mismatch(asked, Expectation((built,)), loaded)


@Drawn("law-save", "LAW-SAVE-1", SAVING, strategies.mixed_encodings, 20)
def saved(implementation: Implementation, question: Question[Encode]) -> Verdicts:
    """A tokenizer that is saved and loaded encodes as before."""
    model = question.table
    special = model.fresh()[2]
    asked = replace(question, context="after save and from_files")
    answer = Instance(implementation, partial(_saved_and_loaded, implementation, model, special)).ask(asked)
    if special != model.fresh()[2]:
        yield Mismatch(asked, Expectation((Unchanged(),)), Changed((asking.CALLERS_SPECIALS,)))
    yield undisturbed(implementation, asked, answer)


@Fixed("law-load-list", "ERROR-STATE-1", (*LOADING, "special", "shared memory"))
def list_passed_to_from_files(implementation: Implementation) -> Verdicts:
    """`from_files` does not change its list of special tokens, which can be long, or have empty or repeated ones."""
    model = strategies.with_ids((), special=["<e>", "<f>"])
    with scratch_folder() as folder:
        yield from asking.odd_lists_kept(
            implementation,
            lambda listed: Question(OnlyLoad(), replace(model, special_tokens=listed)),
            partial(implementation.from_files, *gpt2_files.write(model, folder)),
        )


def _saved_and_loaded(implementation: Implementation, model: Model, special: list[str] | None) -> TokenizerProxy:
    with scratch_folder() as folder:
        implementation.build(model).save(folder)
        return load(implementation, folder, special)


@Fixed("law-loaded-methods", "LAW-WAYS-1", LOADING)
def methods(implementation: Implementation) -> Verdicts:
    """Each method of a tokenizer that was loaded with special tokens follows them."""
    if "special" not in implementation.capabilities:
        return
    special = ("<|s|>",)
    listed = strategies.with_ids(((b"k", b"l"),), special=special)
    without = strategies.with_ids(((b"k", b"l"),), strategies.Layout(2, 44, 3, 11))
    for written, context in ((listed, "loaded from files"), (without, "loaded from files without the special token")):

        def make(written: Model = written) -> TokenizerProxy:
            with scratch_folder() as folder:
                return implementation.from_files(*gpt2_files.write(written, folder), list(special))

        loaded, model = Instance(implementation, make), written
        if written is without:  # it is open which id the special token gets, and whether it is refused
            match loaded.ask(Question(Encode(special[0]), without)):
                case Ids((index,)) if index not in without.vocab:
                    vocab = {**without.vocab, index: special[0].encode()}
                    model = replace(without, vocab=vocab, special_tokens=special)
                case _:
                    return
        every = asking.of_each_method(implementation, model, "m ")
        every = (replace(question, context=context) for question in every)
        yield asking.independent(undisturbed(implementation, asked, loaded.ask(asked)) for asked in every)
        if {"save", "decode"} <= implementation.capabilities:

            def make_again(make: Callable[[], TokenizerProxy] = make) -> TokenizerProxy:
                with scratch_folder() as folder:
                    make().save(folder)
                    return load(implementation, folder, None)

            asked = Question[Any](Decode((model.ids[special[0].encode()],)), model, f"{context}, and saved")
            answer = Instance(implementation, make_again).ask(asked)
            found = undisturbed(implementation, asked, answer)
            yield None if found is None else replace(found, clause_id="FILE-SAVE-1")


LONG_ENTRY = 1_024  # letters of a token with a long key
LONG_LINE = 4_096  # letters of the two tokens of one merge, more than a usual buffer of lines has room for
TWO_BYTES = "".join(map(chr, range(0xE0, 0xF7)))  # letters, of which each byte takes two in a file
MANY_MERGES = 640  # each of which the next one needs; their lines have 200,000 characters, more than most buffers
WHOLE_BLOCKS = 1_025  # bytes with 1,024 merges, which fill blocks of lines to the last one


@cache
def _words_of_gpt2() -> tuple[Question[Encode], Ids]:
    """Pose every tenth word of GPT-2's vocabulary and every run of signs, each of which is one token."""
    model, text, ids = gpt2_model(), "", list[int]()
    signs, letters = regex.compile(r" ?[^\s\p{L}\p{N}\ufffd]+"), regex.compile(r" ?\p{L}+")
    for index, token in model.vocab.items():
        word = token.decode("utf-8", "replace")
        if signs.fullmatch(word) or (index % 10 == 0 and letters.fullmatch(word)):
            text += f"\n{word}"
            ids += [model.ids[b"\n"], index]
    return Question(Encode(text), model), Ids(tuple(ids))


@cache
def _last_of_all_pairs() -> tuple[Question[Encode], Ids]:
    """Pose the result of the last merge of a table that has each pair of bytes: more merges than GPT-2's file."""
    pairs = [(bytes([left]), bytes([right])) for left in range(256) for right in range(256)]
    pairs.sort(key=(b"z", b"z").__eq__)
    return Question(Encode("zz"), strategies.with_ids(pairs)), Ids((255 + len(pairs),))


@Fixed("law-load-long", "FILE-LOAD-1", LOADING)
def long_entries(implementation: Implementation) -> Verdicts:
    """Keys and lines of 4,000 characters are read whole, and so are GPT-2's files and a table with more merges.

    A table in which each merge needs the one before is also saved. Another one has a special token.
    """
    ways = [False, True] if "save" in implementation.capabilities else [False]
    is_gpt2 = implementation.conventions["pattern"] == "gpt2"
    with_specials = [text.encode(LONG_LINE) for text in Texts(implementation).combined[:1]] if is_gpt2 else []
    for (question, right), is_saved in (
        (long_tokens(LONG_ENTRY), False),
        *((one_merge_per_byte(WHOLE_BLOCKS), is_saved) for is_saved in ways),
        (one_merge_per_byte(MANY_MERGES, TWO_BYTES), False),
        (_words_of_gpt2(), False),
        *((posed, False) for posed in with_specials),
        (long_tokens(LONG_LINE), False),
        (_last_of_all_pairs(), False),
    ):
        own, gpt2 = (
            [*pieces(question.table, question.operation.text, split)]
            for split in (expression(question.table.pattern, implementation.conventions), PATTERNS["gpt2"])
        )
        if own != gpt2:
            continue  # the right ids are those of GPT-2's pre-tokens

        def make(model: Model = question.table, is_saved: bool = is_saved) -> TokenizerProxy:
            if is_saved:
                return _saved_and_loaded(implementation, model, None)
            with scratch_folder() as folder:
                return implementation.from_files(*gpt2_files.write(model, folder), model.special_tokens or None)

        answer = Instance(implementation, make).ask(question)
        if not is_correct(implementation, question, answer, right):
            built = ask(implementation, question)
            if is_late(answer) and is_late(built):
                implementation.note("law-load-long: long entries were not tested: the constructor is too slow for them")
                return
            dependence = None if built == right else Dependence("encode", question.operation.text)
            asked = replace(question, context="after save and from_files" if is_saved else "loaded from files")
            clause = "LAW-SAVE-1" if is_saved else ""
            yield Mismatch(asked, Expectation((right,)), answer, depends_on=dependence, clause_id=clause)


ASCII_MERGES: tuple[Merge, ...] = ((b"a", b"b"), (b"1", b"2"))
OTHER_MERGES: tuple[Merge, ...] = ((b"b", b"c"), (b"2", b"3"))
MORE_MERGES: tuple[Merge, ...] = ((b"c", b"d"), (b"b", b"cd"), (b"a", b"b"), (b"2", b"3"), (b"1", b"23"), (b"e", b"f"))
NAMES = ("plain", "a b", "v1.0", "c.json [d] (e) {0} %41&#$f")
"""Names of directories and files. Code that takes a path apart, or fills it into a command, fails for some of them."""


@Fixed("law-file-names", "FILE-LOAD-1", LOADING)
def names(implementation: Implementation) -> Verdicts:
    """Files of any names, in directories of any names, are loaded, and files are saved in these directories."""
    model = strategies.with_ids(ASCII_MERGES)
    question = Question(Encode("ab 1234"), model)
    right = correct_answer(question, implementation.conventions)
    ways: list[tuple[str, str, Callable[..., tuple[Path, Path]]]] = [
        ("FILE-LOAD-1", "loaded from a directory", _write_into),
        ("FILE-LOAD-1", "loaded from two directories, from files", _write_apart),
        ("FILE-LOAD-1", "loaded from two directories, the merges from", partial(_write_apart, renames_vocab=False)),
        (
            "FILE-LOAD-1",
            "loaded from two directories, the vocabulary from",
            partial(_write_apart, renames_merges=False),
        ),
    ]
    if "save" in implementation.capabilities:
        ways.append(("FILE-SAVE-1", "saved in a directory", partial(_save_into, implementation)))
    for name, (clause, how, write) in product(NAMES, ways):

        def make(name: str = name, write: Callable[..., tuple[Path, Path]] = write) -> TokenizerProxy:
            with scratch_folder() as folder:
                return implementation.from_files(*write(model, folder, name), None)

        answer = Instance(implementation, make).ask(question)
        if answer != right:
            depends = Dependence("undisturbed") if name == NAMES[0] and "two directories" not in how else None
            asked = replace(question, context=f"{how} {name!r}")
            yield Mismatch(asked, Expectation((right,)), answer, depends_on=depends, clause_id=clause)


def _write_into(model: Model, folder: Path, name: str) -> tuple[Path, Path]:
    (folder / name).mkdir()
    return gpt2_files.write(model, folder / name)


def _write_apart(
    model: Model, folder: Path, name: str, renames_vocab: bool = True, renames_merges: bool = True
) -> tuple[Path, Path]:
    """Write the files beside others with the usual names, of another tokenizer and of special tokens."""
    other = strategies.with_ids(OTHER_MERGES)
    vocab, merges = gpt2_files.write(model, folder)
    for place in ("1", "2"):
        (folder / place).mkdir()
        gpt2_files.write(other, folder / place)
        for listing, value in (("added_tokens", {"34": 1}), ("special_tokens_map", {"eos_token": "34"})):
            (folder / place / f"{listing}.json").write_text(json.dumps(value), "utf-8")
    vocab = vocab.replace(folder / "1" / (name if renames_vocab else vocab.name))
    return vocab, merges.replace(folder / "2" / (name if renames_merges else merges.name))


def _save_into(implementation: Implementation, model: Model, folder: Path, name: str) -> tuple[Path, Path]:
    (folder / name).mkdir()
    implementation.build(model).save(folder / name)
    return folder / name / "vocab.json", folder / name / "merges.txt"


@Fixed("law-saved-numbers", "FILE-SAVE-1", (*SAVING, "special"))
def new_ids(implementation: Implementation) -> Verdicts:
    """`save` keeps the ids of special tokens, even if they are listed in another order later."""
    special = ("<a>", "<b>", "<c>")
    with_gaps = strategies.with_ids(ASCII_MERGES, strategies.Layout(first=44, step=3))
    model = replace(with_gaps, special_tokens=special)
    question = Question(Encode("x<a>y<b>z<c>"), model)
    before = ask(implementation, question)
    if isinstance(before, Refusal):
        return  # it may require an entry for each
    again = Instance(implementation, lambda: _saved_and_loaded(implementation, model, [*special[::-1]]))
    answer = again.ask(question)
    if answer == before:
        return
    depends = None
    if equals_oracle(implementation, question, "SPECIAL-ABSENT-2") is not None:
        depends = Dependence("undisturbed")
    elif isinstance(before, Ids) and not _encodes_by_entries(implementation, question, before):
        depends = Dependence("encode", question.operation.text)
    asked = replace(question, context="after save and from_files with the special tokens in reverse order")
    yield Mismatch(asked, Expectation((before,), "encode before save"), answer, depends_on=depends)


def _encodes_by_entries(implementation: Implementation, question: Question[Encode], before: Ids) -> bool:
    """Return whether a tokenizer that is built from the saved table, with the list reversed, gives the same ids."""
    model = question.table
    special = model.special_tokens or ()
    entries = dict(zip(before.ids[1::2], (token.encode() for token in special), strict=False))
    saved = replace(model, vocab={**model.vocab, **entries}, special_tokens=special[::-1])
    return ask(implementation, replace(question, model=saved)) == before


@Fixed("law-saved-over", "LAW-SAVE-1", SAVING)
def saved_over(implementation: Implementation) -> Verdicts:
    """`save` replaces the files of a tokenizer that was saved into the directory before."""
    text = "abcd 1234 ef"
    few, many, as_few = map(strategies.with_ids, (ASCII_MERGES, MORE_MERGES, OTHER_MERGES))
    few = replace(few, vocab={**few.vocab, 300: b"ef"})  # which the last merge of `many` makes, if it is left over
    for first, second in ((few, many), (many, few), (few, as_few)):
        question = Question(Encode(text), second, "saved into a directory that holds another one")
        right = correct_answer(question, implementation.conventions)

        def again(*models: Model) -> Answer:
            with scratch_folder() as folder, scratch_folder() as copies:
                for place, model in enumerate(models):
                    try:
                        implementation.build(model).save(folder)
                    except CallFailed:
                        if place:
                            return Accepted()  # it may refuse a directory that is in use
                        raise
                    loaded = load(implementation, Path(copytree(folder, copies / str(place))), None)
                return Ids(tuple(loaded.encode(text)))

        answer = contained(implementation, partial(again, first, second))
        if answer not in (right, Accepted()):
            alone = contained(implementation, partial(again, second))
            dependence = None if alone == right else Dependence("undisturbed")
            yield Mismatch(question, Expectation((right,)), answer, depends_on=dependence)


VERSION_LINE = b"#version: 0.2"
NEVER_APPLIED = (
    *((VERSION_LINE[:end], VERSION_LINE[end : end + 1]) for end in range(1, len(VERSION_LINE))),
    (b"a", b"1"),
)
"""Merges across the boundaries of pre-tokens. No text shows that a reader lost one; the files that it saves do."""


@Fixed("law-saved-again", "FILE-SAVE-1", ("save", "from_files"))
def saved_again(implementation: Implementation) -> Verdicts:
    """A tokenizer that was loaded from files saves the same table."""
    question = Question(Save(), strategies.with_ids((*ASCII_MERGES, *NEVER_APPLIED)))

    def make() -> TokenizerProxy:
        with scratch_folder() as folder:
            return implementation.from_files(*gpt2_files.write(question.table, folder), None)

    asked = replace(question, context="loaded from files")
    yield undisturbed(implementation, asked, Instance(implementation, make).ask(asked))


@Fixed("law-saved-elsewhere", "FILE-SAVE-1", (*SAVING, "new process"))
def ascii_locale(implementation: Implementation) -> Verdicts:
    """Files are written and read as UTF-8 in a locale whose encoding is ASCII."""
    special = ["<|é|>"] if "special" in implementation.capabilities else None
    merges = (*ASCII_MERGES, (b"\xc3", b"\xa9"))
    model = strategies.with_ids(merges, special=special)
    question = Question(Encode(f"ab 1234{''.join(special or ())}é"), model)
    try:
        other = implementation.elsewhere(asking.OTHER_PROCESSES[1])
        with other.time_limit():
            built = other.build(model)
    except (CallFailed, TimedOut):
        return  # it does not start there
    for saver, loader, context in (
        (implementation, implementation, "saved twice, and loaded"),
        (other, other, "saved in the locale C, and loaded there"),
        (other, implementation, "saved in the locale C, and loaded in the default locale"),
    ):

        def make(saver: Implementation = saver, loader: Implementation = loader) -> TokenizerProxy:
            with scratch_folder() as folder, scratch_folder() as first:
                one = built if saver is other else implementation.build(model)
                for place in (first, folder) if saver is implementation else (folder,):
                    one.save(place)
                return load(loader, folder, model.fresh()[2])

        asked = replace(question, context=context)
        yield undisturbed(implementation, asked, Instance(implementation, make).ask(question))


def _in_the_middle(text: str) -> str:
    return text[: len(text) // 2]


def _with_unknown_merge(text: str) -> str:
    """Return a `tokenizer.json` whose last merge has a part without an entry, in the spelling of the others."""
    document = json.loads(text)
    merges = document["model"]["merges"]
    merges.append("c absent" if isinstance(merges[0], str) else ["c", "absent"])
    return json.dumps(document)


_BOTH = (ASCII_MERGES, OTHER_MERGES)
MODELS = list(map(strategies.with_ids, _BOTH))
JSON_MODELS = [replace(strategies.with_ids((*merges, (b"\xc3", b"\xa9"))), pipeline=Pipeline()) for merges in _BOTH]


def _replaced(
    implementation: Implementation,
    models: Sequence[Model],
    load: Callable[[Model, Path], TokenizerProxy],
    broken: Callable[[Model, Path], Iterator[Callable[[], object]]],
) -> Verdicts:
    """Load each model from files that replace those of another one, and again after some that are broken."""
    with scratch_folder() as folder:
        for model, other in zip((*models, models[0]), (None, *models), strict=False):
            question = Question(Encode("abc 123 \u00e9"), model, "from a file that replaced another one")
            again = Instance(implementation, partial(load, model, folder))
            yield undisturbed(implementation, question, again.ask(question))
            for load_broken in () if other is None else broken(other, folder):
                if is_lost(contained(implementation, partial(_loaded, load_broken))):
                    return  # it may refuse them in any way
                later = replace(question, context="after files that were broken")
                answer = Instance(implementation, partial(load, model, folder)).ask(later)
                right = correct_answer(later, implementation.conventions)
                if not is_correct(implementation, later, answer, right):
                    yield Mismatch(later, Expectation((right,)), answer)  # it was correct before


def _loaded(load: Callable[[], object]) -> Answer:
    load()
    return Accepted()


@Fixed("law-loaded-again", "FILE-LOAD-1", LOADING)
def loaded_again(implementation: Implementation) -> Verdicts:
    """Files are read as they are now, also if files with the same names and sizes, or broken ones, were read before."""

    def load_new(model: Model, folder: Path) -> TokenizerProxy:
        return implementation.from_files(*gpt2_files.write(model, folder), None)

    def broken(model: Model, folder: Path) -> Iterator[Callable[[], object]]:
        for at, change in (
            (0, _in_the_middle),
            (1, lambda text: f"{text}a b c\n"),
            (1, lambda text: f"{text}c absent\n"),
        ):
            files = gpt2_files.write(model, folder)
            files[at].write_text(change(files[at].read_text("utf-8")), "utf-8", newline="\n")
            yield partial(implementation.from_files, *files, None)

    yield from _replaced(implementation, MODELS, load_new, broken)


@Fixed("law-json-again", "PIPELINE-LOAD-1", LOADING_JSON)
def json_again(implementation: Implementation) -> Verdicts:
    """A `tokenizer.json` is read as it is now, also if another one, or a broken one, was there before."""

    def broken(model: Model, folder: Path) -> Iterator[Callable[[], object]]:
        for change in (_in_the_middle, _with_unknown_merge):
            yield partial(implementation.from_tokenizer_json, model, folder, change)

    yield from _replaced(implementation, JSON_MODELS, implementation.from_tokenizer_json, broken)


def _in_reverse(value: Any) -> Any:
    """Return a JSON value with the members of each object in reverse order."""
    if isinstance(value, dict):
        return {key: _in_reverse(value[key]) for key in reversed(value)}
    return [*map(_in_reverse, value)] if isinstance(value, list) else value


NOTATIONS: dict[str, Callable[[str], str]] = {
    "on one line, with escapes": lambda text: json.dumps(json.loads(text)).replace("/", r"\/"),
    "without white space": lambda text: json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")),
    "with tabs and line feeds around each colon, and lines that end with CRLF": lambda text: json.dumps(
        json.loads(text), ensure_ascii=False, indent="\t", separators=("\t,", "\n:\t\n")
    ).replace("\n", "\r\n"),
    "with the members of each object in reverse order": lambda text: json.dumps(_in_reverse(json.loads(text))),
}
_OF_EACH_KIND = Pipeline(
    normalizer=("NFC",),
    added_tokens=(AddedToken("<\U0001f98a>"), AddedToken('\u00ab\t"/\\')),
    steps=(Split('\u00e9|\U0001f98a| ?[a-z"\\\\]+|/'), ByteLevel(split=False)),
)


@Fixed("law-json-notations", "PIPELINE-LOAD-1", LOADING_JSON)
def json_notations(implementation: Implementation) -> Verdicts:
    """A `tokenizer.json` is read in each notation that JSON has for the same value."""
    merges = ((b'"', b"\\"), (b"\xc3", b"\xa9"), (b"\xf0", b"\x9f"), (b" ", b"a"))
    added = [token.content for token in _OF_EACH_KIND.added_tokens]
    model = replace(strategies.with_ids(merges, special=added), special_tokens=None, pipeline=_OF_EACH_KIND)
    text = 'e\u0301\u00e9 a/<\U0001f98a>\U0001f98a"\\ ab\u00ab\t"/\\ab'
    for notation, change in NOTATIONS.items():
        question = Question(Encode(text), model, f"from a file {notation}")
        again = Instance(implementation, partial(implementation.from_tokenizer_json, model, change=change))
        yield undisturbed(implementation, question, again.ask(question))


@Fixed("law-load-notations", "FILE-LOAD-1", (*LOADING, "special"))
def notations(implementation: Implementation) -> Verdicts:
    """A key is read alike with and without escapes, and one that spells a merge or a byte is never a special token."""
    for special in ("<\U0001f98a>", "<\u00e9\u65e5>"):
        model = strategies.with_ids(ASCII_MERGES, special=(special,))
        question = Question(Encode(f"ab{special}a"), model, "loaded from files with escapes")

        def make(is_escaped: bool, model: Model = model, special: str = special) -> TokenizerProxy:
            with scratch_folder() as folder:
                return implementation.from_files(*gpt2_files.write(model, folder, ascii=is_escaped), [special])

        plain, escaped = (Instance(implementation, partial(make, way)).ask(question) for way in (False, True))
        if plain != escaped and isinstance(plain, Ids):
            yield Mismatch(question, Expectation((plain,), "without escapes"), escaped)
    # The special tokens are also the spellings of the result of a merge, and of a byte.
    of_merge, of_byte = strategies.with_ids(((b"\xc2", b"\xb6"),)), strategies.with_ids(())
    for special, text, model in (("\u00c2\u00b6", "a\u00b6", of_merge), ("\u00b6", "a\u0136", of_byte)):
        loading = Question(Load(text), replace(model, special_tokens=(special,)))
        right = correct_answer(loading, implementation.conventions)
        expected = Expected({"": (right, AnyError("a special token without an entry"))})
        yield asking.judged(implementation, loading, expected, "FILE-SPECIAL-1")


@Fixed("law-json-elsewhere", "PIPELINE-LOAD-1", (*LOADING_JSON, "new process"))
def json_in_ascii_locale(implementation: Implementation) -> Verdicts:
    """A `tokenizer.json` is read as UTF-8 in a locale whose encoding is ASCII."""
    question = Question(Encode("abc 123 é"), JSON_MODELS[0], "in the locale C")
    try:
        other = implementation.elsewhere(asking.OTHER_PROCESSES[1])
    except (CallFailed, TimedOut):
        return  # it does not start there
    yield undisturbed(implementation, question, ask(other, question))


PROPERTIES: tuple[Property, ...] = (
    *(
        loaded,
        two_merges_of_one_token,
        methods,
        long_entries,
        names,
        saved,
        list_passed_to_from_files,
        new_ids,
        loaded_again,
        saved_over,
        saved_again,
        ascii_locale,
        notations,
        json_again,
        json_notations,
        json_in_ascii_locale,
    ),
)
