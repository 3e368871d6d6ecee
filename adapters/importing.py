"""Imports modules and finds the objects in them, or raises a one-line error that says what is wrong."""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
import traceback
from pathlib import Path
from types import ModuleType

from .errors import AdapterError, one_line


def load(spec: str) -> object:
    """Return the callable that `pkg.module:attribute` names.

    Raises:
        AdapterError: if it does not exist or cannot be called.
    """
    found = find(spec)
    if inspect.isclass(found) or inspect.isroutine(found):
        return found
    kind = type(found).__name__
    if isinstance(found, ModuleType):
        raise AdapterError(f"{spec} is a module; name the class in it: {found.__name__}:Class")
    if hasattr(found, "encode") or hasattr(found, "decode"):
        module_name = spec.partition(":")[0]
        raise AdapterError(f"{spec} is an instance of {kind}; name the class, {module_name}:{kind}, or a factory")
    if not callable(found):
        raise AdapterError(f"{spec} is of type {kind} and cannot be called; name a class or a function")
    return found


def find(spec: str) -> object:
    """Return the object that `pkg.module:attribute` names.

    Raises:
        AdapterError: if it does not exist.
    """
    module_name, _, path = spec.partition(":")
    if is_path(spec.rpartition(":")[0]):
        raise AdapterError(path_hint(*spec.rpartition(":")[::2]))
    if not path or ":" in path:
        raise AdapterError(f"{spec!a} is not of the form pkg.module:Class")
    found: object = load_module(module_name)
    where = module_name
    for name in path.split("."):
        if not hasattr(found, name):
            raise AdapterError(_no_attribute(found, where, name))
        found = getattr(found, name)
        where = f"{where}{'.' if ':' in where else ':'}{name}"
    return found


def load_module(name: str) -> ModuleType:
    """Import a module, with the current directory first on `sys.path`.

    Raises:
        AdapterError: if it is not found or raises anything but KeyboardInterrupt.
    """
    if is_path(name):
        raise AdapterError(path_hint(name))
    if not all(part.isidentifier() for part in name.split(".")):
        raise AdapterError(f"{name!a} is not the name of a module; write pkg.module:Class")
    here = str(Path.cwd())
    if sys.path[:1] != [here]:
        sys.path[:] = [here, *(entry for entry in sys.path if entry != here)]
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except (AdapterError, KeyboardInterrupt):
        raise
    except BaseException as error:
        message = _import_failed(name, error, here)
    raise AdapterError(message)


def is_path(name: str) -> bool:
    """Return whether `name` is a file rather than a module."""
    return name.endswith(".py") or "/" in name or "\\" in name


def path_hint(name: str, attribute: str = "") -> str:
    """Return the error line that says what to write instead of the path of a module.

    Args:
        name: a path, relative to the current directory or absolute.
        attribute: the name to look up in the module, or "" for the module itself.
    """
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
        return (
            f"there is no module {error.name or name!a}; looked in {one_line(here)} and in the packages "
            f"installed in {one_line(sys.prefix)}; run from the directory that contains it, or install it"
        )
    at = f" ({one_line(place)})" if place else ""
    if isinstance(error, SystemExit):
        code = one_line(repr(error.code))
        return f"importing {name} called sys.exit({code}){at}; move this call under if __name__ == '__main__'"
    return f"importing {name} failed: {type(error).__name__}: {one_line(str(error))}{at}"


def _place(error: BaseException) -> str:
    """Return file:line of the innermost frame outside the import machinery and this file."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen") and frame.filename not in (__file__, importlib.__file__)
    ]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def _no_attribute(owner: object, where: str, name: str) -> str:
    try:
        public = [key for key in dir(owner) if not key.startswith("_") and callable(getattr(owner, key, None))]
        if isinstance(owner, ModuleType):
            own = [key for key in public if getattr(getattr(owner, key), "__module__", "") == owner.__name__]
            public = own or public
    except Exception:  # its own `__dir__` or `__getattr__` can raise anything
        return f"{where} has no {name!a}"
    close = difflib.get_close_matches(name, public, n=1)
    if close:
        return f"{where} has no {name!a}; did you mean {close[0]!r}?"
    return f"{where} has no {name!a}; it has {', '.join(public[:12]) or 'no class and no function'}"
