"""Writes plain Python that repeats a call of the implementation without the suite."""

from __future__ import annotations

import re
import shlex
import tempfile
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import GPT2_BYTE_ORDER, Model, gpt2_files
from bpe_conformance.fixtures.models import FOLDER
from bpe_conformance.reference.formats import huggingface

from ..answer import Table
from ..operations import Directory, Load, Question, Train
from ..outcome import Command, Mismatch, RunResult
from . import show

LONGEST = 400  # the longest program that is shown as one line, in characters


def one_line(asked: Question[Any], command: Command, entries: slice | None = None) -> str:
    """Return a shell command that repeats the call in plain Python, or "" if it is too long.

    A training prints these entries of the vocabulary, by id, or the merges.
    """
    head, call = _imported(command, asked), _call(asked, command, entries)
    model = asked.model
    if not head or not call or asked.operation.call().uses_files or _is_unknown_table(model, command):
        return ""
    if command.trains_from_file if model is None else model.is_gpt2 or model.pipeline is not None or command.reads_file:
        return ""
    line = call.replace("TOKENIZER", f"{command.builder[1]}({', '.join(_arguments(model, command))})")
    if command.argument == command.adapter:  # the class is at hand
        return line if len(line) <= LONGEST else ""
    code = f"{head}; {line}"
    return f"python -c {_quoted(code)}" if len(code) <= LONGEST else ""


def program(asked: Question[Any], command: Command, entries: slice | None = None) -> str:
    """Return a short program that repeats the call, or "" if there is none."""
    head, call = _imported(command, asked), _call(asked, command, entries)
    if not head or not call or _is_unknown_table(asked.model, command):
        return ""
    lines = ["import sys", "", 'sys.path.insert(0, "")  # the current directory', head, ""]
    if asked.model is None:
        if command.trains_from_file:
            lines += ["import pathlib", "import tempfile", ""]
            lines += ['path = pathlib.Path(tempfile.mkdtemp(), "corpus.txt")']
            lines += [f"path.write_bytes({asked.operation.text!a}.encode())"]
        return "\n".join([*lines, call, ""])
    if asked.operation.call().uses_files:
        lines = ["import pathlib", "import tempfile", *lines, "folder = pathlib.Path(tempfile.mkdtemp())"]
    if asked.operation.call().on == "loaded":
        return "\n".join([*lines, *_loaded(asked.operation, asked.table, call, command), ""])
    lines += _model(asked.table, command)
    return "\n".join([*lines, call.replace("TOKENIZER", "tokenizer"), ""])


def save(asked: Question[Any], name: str, result: RunResult, entries: slice | None = None) -> str:
    """Write the program that repeats the call, and return the command that runs it, or "" if there is none."""
    text = program(asked, result.command, entries)
    if not text or result.programs is None:
        return ""
    file = result.programs / f"{name}.py"
    try:
        file.write_text(text, "utf-8")
    except OSError:
        return ""
    here = Path.cwd()
    return f"python {shlex.quote(str(file.relative_to(here) if file.is_relative_to(here) else file))}"


def entries(found: Mismatch) -> slice | None:
    """Return which entries of a learned vocabulary show the mistake, or None if the merges do."""
    match found.answer, found.expected.alternatives:
        case Table(vocab, merges), [Table() as right, *_] if merges == right.merges and vocab != right.vocab:
            pairs = zip_longest(sorted(vocab.items()), sorted(right.vocab.items()))
            first = next(index for index, (mine, other) in enumerate(pairs) if mine != other)
            return slice(max(0, first - 1), first + 2)
    return None


def _is_unknown_table(model: Model | None, command: Command) -> bool:
    """Return whether a program cannot show a model: it is too large, and not GPT-2's, or no file represents it."""
    if model is None or command.fixed_model:
        return False
    return not _file(model) if command.reads_file else model.is_large and not model.is_gpt2


def _file(model: Model) -> str:
    """Return the text of a tokenizer.json, or "" if there is none, or a large one."""
    with suppress(ValueError):
        return "" if model.is_large else huggingface.either_spelling(model, indent=1)
    return ""


def _imported(command: Command, asked: Question[Any]) -> str:
    """Return the import line of what is called, or "" if it cannot be imported."""
    found = command.trainer if asked.model is None else command.builder
    if found is None or asked.context:
        return ""
    return f"from {found[0]} import {re.split('[.(]', found[1])[0]}"


def _quoted(code: str) -> str:
    """Quote for a POSIX shell, in double quotes if possible, because the code has many single quotes."""
    return shlex.quote(code) if "!" in code else '"' + re.sub(r'(["$`\\])', r"\\\1", code) + '"'


def _call(asked: Question[Any], command: Command, entries: slice | None) -> str:
    """Return a statement that calls a method of TOKENIZER, or trains, and prints the result."""
    made = asked.operation.call()
    if made.on == "class" and made.arguments is not None:
        return _training(asked.operation, command, entries)
    if made.arguments in (None, ("",)) and made.on != "tokenizer":
        return "TOKENIZER"
    shown = f"TOKENIZER.{show.call(made, show.PYTHON)}"
    if made.arguments is None:  # several calls
        return ""
    if Directory() in made.arguments:
        return f"{shown}\nprint(*[file.read_text('utf-8') for file in sorted(folder.iterdir())])"
    return f"print(list({shown}))" if made.is_lazy else f"print({shown})"


def _training(asked: Train, command: Command, entries: slice | None) -> str:
    if command.trainer is None:
        return ""
    name = command.trainer[1]
    text = "path" if command.trains_from_file else ascii(asked.text)
    arguments = f"{text}, {asked.vocab_size}, {list(asked.special)!a}"
    if (spelling := command.spellings.get(f"train-{asked.pattern}")) is not None:
        arguments += f", pattern={spelling!a}"
    index, attribute = ("[1]", ".merges") if entries is None else ("[0]", ".vocab")
    shown = "{}" if entries is None else f"sorted({{}}.items())[{entries.start}:{entries.stop}]"
    if command.trains_from_file:
        return f"print({shown.format(f'{name}({arguments}){index}')})"
    call = f"{name}.train({arguments})"
    if "--bpe-isolate" in command.options:  # the other process does not say whether it returns a pair
        either = f"(made{index} if isinstance(made := {call}, tuple) else made{attribute})"
        return f"print({shown.format(either)})"
    return f"print({shown.format(call + (index if command.returns_pair else attribute))})"


def _arguments(model: Model | None, command: Command) -> list[str]:
    if model is None or command.fixed_model:
        return []
    return [_vocab(model), ascii(list(model.merges)), *_further(model, command)]


def _further(model: Model, command: Command) -> list[str]:
    found = [ascii(list(model.special_tokens))] if model.special_tokens is not None else command.always_passed
    if (spelling := command.spellings.get(model.pattern)) is not None:
        found.append(f"pattern={spelling!a}")
    return found


def _vocab(model: Model) -> str:
    """Return the vocabulary: the bytes, in a short form if their ids are consecutive, and the other tokens."""
    order = [model.vocab.get(index, b"") for index in range(256)]
    missing = [index for index, token in enumerate(order) if not token]
    if all(token in (b"", bytes([index])) for index, token in enumerate(order)):
        atoms = f"{{i: bytes([i]) for i in range(256){f' if i not in {missing}' if missing else ''}}}"
    elif sorted(order) == [bytes([byte]) for byte in range(256)]:
        atoms = f"{{i: bytes([b]) for i, b in enumerate(bytes.fromhex('{b''.join(order).hex()}'))}}"
    else:
        return ascii(dict(model.vocab))
    others = {index: token for index, token in model.vocab.items() if index >= 256}
    return f"{{**{atoms}, **{others}}}" if others else atoms


def _model(model: Model, command: Command) -> list[str]:
    if command.fixed_model:
        return [f"tokenizer = {command.builder[1]}()"]
    if model.pipeline is not None or command.reads_file:
        return [
            "import pathlib",
            "import tempfile",
            'path = pathlib.Path(tempfile.mkdtemp(), "tokenizer.json")',
            f"path.write_text({_file(model)!a}, 'utf-8')",
            f"tokenizer = {command.builder[1]}.from_tokenizer_json(str(path))",
        ]
    further = "".join(f", {one}" for one in _further(model, command))
    if not model.is_large:
        lines = [f"vocab = {_vocab(model)}", f"merges = {list(model.merges)!a}"]
    else:
        order = bytes(GPT2_BYTE_ORDER)
        special = {index: token for index, token in model.vocab.items() if index >= 256 + len(model.merges)}
        lines = [
            f"order = bytes.fromhex({order.hex()!r})  # GPT-2's order of the bytes",
            "spelled = {chr(b) if i < 188 else chr(68 + i): bytes([b]) for i, b in enumerate(order)}",
            f"file = open({str(FOLDER / 'gpt2' / 'vocab.bpe')!a}, encoding='utf-8')",
            "pairs = [line.split() for line in file][1:]",
            "merges = [tuple(b''.join(spelled[c] for c in part) for part in pair) for pair in pairs if pair]",
            f"vocab = dict(enumerate([*(bytes([b]) for b in order), *(a + b for a, b in merges)])) | {special}",
        ]
    return [*lines, f"tokenizer = {command.builder[1]}(vocab, merges{further})"]


def _loaded(load: Load, model: Model, call: str, command: Command) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        files = gpt2_files.write(model, Path(folder), **dict(load.options))
        contents = [file.read_bytes() for file in files]
    special = f", {list(model.special_tokens)!a}" if model.special_tokens is not None else ""
    return [
        *(f"(folder / {file.name!a}).write_bytes({data!a})" for file, data in zip(files, contents, strict=True)),
        f"paths = [str(folder / name) for name in {[file.name for file in files]}]",
        f"tokenizer = {command.builder[1]}.from_files(*paths{special})",
        call.replace("TOKENIZER", "tokenizer"),
    ]
