"""Confines the process of a graded submission: what it can import, read and write, and whom it can reach.

Where the kernel has Landlock (Linux 5.13 or later), it enforces this, on native code and on started programs, too.
Elsewhere an audit hook of Python does, which native code evades; programs cannot be started then.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import importlib
import json
import os
import struct
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib import util
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

SUBMISSION = "submission"  # the directory in which a submission runs
_OWN = __name__.partition(".")[0]
_SHAPES = ("cs336", "functions", "minbpe", "tiktoken_encoding")
_NEEDED = (f"{_OWN}.protocol", f"{_OWN}.adapters.loading", *(f"{_OWN}.adapters.shapes.{name}" for name in _SHAPES))
_SYSTEM = (
    *("/bin", "/etc", "/lib", "/lib64", "/nix", "/opt", "/proc", "/sbin", "/sys", "/usr", "/System", "/Library"),
    *("/dev/full", "/dev/random", "/dev/urandom", "/dev/zero"),  # not the disks and terminals
)
SHARED = "/dev/shm"  # has the semaphores, so a confined process can write to it
_DEVICES = (os.devnull, SHARED)
_INSTALLED = ("lib*/python*/*-packages", "local/lib*/python*/*-packages")  # below a prefix of Python

_CREATE, _ADD, _RESTRICT, _NO_NEW_PRIVILEGES = 444, 445, 446, 38  # system calls, and an operation of prctl
_EXECUTE, _WRITE, _READ, _LIST, _TRUNCATE = 1, 2, 4, 8, 1 << 14  # rights
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE  # all others are rights of directories
_SECCOMP, _WITH_FILTER = 22, 2  # an operation of prctl, and its mode
_MACHINES = {"x86_64": (0xC000003E, 302, 41), "aarch64": (0xC00000B7, 261, 198)}
"""Machine → its number, and those of the system calls prlimit and socket."""
_IO_URING, _MPTCP = 425, 262

_CHANGED = ("chmod", "chown", "link", "mkdir", "remove", "rename", "rmdir", "symlink", "truncate", "utime")
_CHANGES = {f"os.{name}" for name in _CHANGED}
_PROGRAMS = {"subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "os.system"}
_NETWORK = {"socket.bind", "socket.connect", "socket.getaddrinfo", "socket.sendto"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


@dataclass(frozen=True)
class Confinement:
    """The limits of a submission, which is in a directory of `scratch`, the only one into which it can write.

    It can neither import the modules `blocked` nor read their files, the golden cases or the paths `hidden`.
    """

    scratch: str
    blocked: Sequence[str]
    hidden: Sequence[str] = ()

    @property
    def options(self) -> list[str]:
        return ["--confined", json.dumps(vars(self))]

    def enter(self) -> None:
        """Confine this process, and change to the directory of the submission."""
        for name in _NEEDED:
            importlib.import_module(name)
        paths, prefixes = {*map(_real, filter(None, sys.path))}, {_real(sys.prefix), _real(sys.base_prefix), "/usr"}
        installed = {_real(path) for prefix in prefixes for some in _INSTALLED for path in Path(prefix).glob(some)}
        blocked = (path for name in self.blocked for path in _files(name))
        hidden = {*self.hidden, *_golden(), *(installed - paths), *blocked}
        own = {_real(str(module.__file__)) for name, module in sys.modules.items() if name.partition(".")[0] == _OWN}
        readable = paths | prefixes | own | {_real(path) for path in _SYSTEM if Path(path).exists()}
        writable = [_real(path) for path in (self.scratch, *_DEVICES)]
        tried = os.open(tried_file(self.scratch), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if landlocked(readable, hidden, writable):
            _refuse_calls()
        else:
            sys.addaudithook(audit_hook(readable, hidden, writable))
        os.chdir(Path(self.scratch, SUBMISSION))
        sys.meta_path.insert(0, _Refusal(self.blocked, tried))
        util.find_spec = _found_unless_refused


def tried_file(scratch: str) -> str:
    """Return the file in which refused imports are recorded. The submission cannot open it."""
    return f"{scratch}-tried"


class _Refusal(MetaPathFinder):
    def __init__(self, blocked: Sequence[str], tried: int) -> None:
        self._blocked, self._tried = blocked, tried
        self._own = str(Path.cwd()), "<"  # "<string>" is code that is made of a string

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        for blocked in self._blocked:
            if f"{name}.".startswith(f"{blocked}."):
                folder = self._own[0]
                folders = [folder] if path is None else [one for one in path if one.startswith(folder)]
                if found := PathFinder.find_spec(name, folders):
                    return found  # a file of the submission can have the name of a package: bpe.py
                if _importer().startswith(self._own):  # and not a package that asks what else is installed
                    os.write(self._tried, f"{name}\n".encode())
                fix = f"a submission cannot import {name} (--allow-import {blocked} would permit it)"
                raise ModuleNotFoundError(fix, name=name)
        return None


def _importer() -> str:
    """Return the file of the code that imports a module."""
    frame = sys._getframe(2)
    while frame.f_back and frame.f_code.co_filename.startswith(("<frozen", str(importlib.__file__))):
        frame = frame.f_back
    return frame.f_code.co_filename


def _found_unless_refused(name: str, package: str | None = None, _find: Any = util.find_spec) -> Any:
    """Return None for a refused module, for code that asks in this way whether a package is installed."""
    with contextlib.suppress(ModuleNotFoundError):
        return _find(name, package)
    return None


def _real(path: Any) -> str:
    return str(os.path.realpath(path))


def _files(name: str) -> Iterator[str]:
    """Yield the paths of a module that is installed, without importing it, and those to which they link."""
    with contextlib.suppress(ImportError, ValueError, AttributeError):
        if spec := util.find_spec(name):
            folders = list(spec.submodule_search_locations or ())
            yield from map(_real, folders)
            if spec.has_location:
                yield str(Path(_real(spec.origin)).parent) if folders else _real(spec.origin)


def _golden() -> Iterator[str]:
    yield from (_real(Path(folder, "SPEC.md")) for folder in _files(_OWN))
    for folder in _files(f"{_OWN}.fixtures"):
        yield from (_real(path) for path in Path(folder).iterdir() if path.is_dir())


def has_landlock() -> bool:
    return _landlock() > 0


def _landlock() -> int:
    """Return the version of Landlock, at most 0 if there is none."""
    return int(ctypes.CDLL(None).syscall(_CREATE, None, 0, 1)) if sys.platform == "linux" else 0


def landlocked(readable: Collection[str], hidden: Collection[str], writable: Collection[str]) -> bool:
    """Deny this thread and its children all other files, TCP and signals; return whether the kernel can do that."""
    if (version := _landlock()) < 1:
        return False
    call = ctypes.CDLL(None).syscall
    handled = (1 << min(12 + version, 15)) - 1
    refused = struct.pack("=QQQ", handled, 3, 3)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    if (rules := call(_CREATE, refused, len(refused), 0)) < 0:
        return False

    def allow(path: str, rights: int) -> None:
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            of_kind = handled if Path(path).is_dir() else handled & _OF_FILES
            call(_ADD, rules, 1, struct.pack("=Qi", rights & of_kind, descriptor), 0)
            os.close(descriptor)

    def allow_reading(path: str) -> None:
        if any(other.startswith(f"{path}/") for other in hidden):
            with contextlib.suppress(OSError):
                for entry in os.scandir(path):
                    if entry.path not in hidden and not entry.is_symlink():
                        allow_reading(entry.path)
        elif path not in hidden:
            allow(path, _EXECUTE | _READ)

    for path in writable:
        allow(path, handled)
    for path in readable:
        allow(path, _LIST)
        allow_reading(path)
    return bool(ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0 and call(_RESTRICT, rules, 0) == 0)


def _refuse_calls() -> None:
    """Have the kernel refuse what Landlock permits: the limits of other processes, MPTCP, and io_uring's own calls."""
    machine = os.uname().machine if sys.platform == "linux" and sys.maxsize > 1 << 32 else ""
    if machine not in _MACHINES:
        return
    architecture, limits, socket = _MACHINES[machine]
    load, equal, at_least, end = 0x20, 0x15, 0x35, 0x06
    steps = (
        (load, 0, 0, 4),
        (equal, 0, 10, architecture),  # that of a program for another one has other numbers
        (load, 0, 0, 0),
        (at_least, 8, 0, 1 << 30),  # x32
        (equal, 0, 2, limits),
        (load, 0, 0, 16),  # the process; 0 is the calling one
        (equal, 4, 5, 0),
        (equal, 0, 2, socket),
        (load, 0, 0, 32),  # the protocol
        (equal, 2, 1, _MPTCP),
        (equal, 1, 0, _IO_URING),
        (end, 0, 0, 0x7FFF0000),  # permit it
        (end, 0, 0, 0x00050000 | errno.EPERM),
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = struct.pack("@HP", len(steps), ctypes.addressof(code))
    ctypes.CDLL(None).prctl(_SECCOMP, _WITH_FILTER, program, 0, 0)


def audit_hook(
    readable: Collection[str], hidden: Collection[str], writable: Collection[str]
) -> Callable[[str, tuple[Any, ...]], None]:
    """Return a hook that refuses other files, programs, the network, and signals to other sessions."""

    def beneath(path: str, folders: Collection[str]) -> bool:
        return any(path == folder or path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)

    def is_refused(path: Any, writes: bool) -> bool:
        if isinstance(path, int):
            return False
        real = _real(os.fsdecode(path))
        return not (beneath(real, writable) or (not writes and beneath(real, readable) and not beneath(real, hidden)))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        refused = event in _PROGRAMS
        if event == "open":
            refused = arguments[0] is not None and is_refused(arguments[0], bool((arguments[2] or 0) & _WRITES))
        elif event in _CHANGES:
            refused = any(is_refused(path, True) for path in arguments if isinstance(path, (str, bytes, os.PathLike)))
        elif event in _NETWORK:
            refused = not isinstance(arguments[1], (str, bytes))
        elif event in ("os.kill", "os.killpg") and hasattr(os, "getsid"):
            refused = arguments[0] < 0 or os.getsid(arguments[0]) != os.getsid(0)
        elif event == "resource.prlimit":
            refused = arguments[0] not in (0, os.getpid())
        if refused:
            raise PermissionError(f"a submission cannot do this: {event} {arguments[:1]}")

    return hook
