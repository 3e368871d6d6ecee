"""Reads all seeds and hostile inputs twice, the second time under an audit hook: `python tests/fuzz/audit.py FOLDER`.

The first pass imports the modules that it needs. The second must not execute, compile, unpickle, import or start
anything, and may open only the input files and our own files.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import yaml

import bpe_conformance
from fuzz.hostile import HOSTILE
from fuzz.targets import TARGETS, check, seeds

FORBIDDEN = {"exec", "compile", "import", "pickle.find_class", "code.__new__", "marshal.loads"}
FORBIDDEN |= {"os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "subprocess.Popen"}
FORBIDDEN |= {"socket.connect", "socket.bind", "ctypes.dlopen", "ctypes.dlsym", "os.kill", "os.putenv"}
LONGEST = 1 << 14
"""The most bytes of an input: longer ones reach no other code."""
CHANGES = {"os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate", "os.mkdir"}


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    inputs = [(name, data) for name in TARGETS for data in seeds(name)]
    inputs += [(name, data) for name, table in HOSTILE.items() for data, _ in table.values()]
    inputs = [(name, data) for name, data in inputs if len(data) <= LONGEST]
    places = [
        Path(bpe_conformance.__file__).parent,
        Path(__file__).parents[2],
        Path(sysconfig.get_path("stdlib")),
        folder,
    ]
    allowed = tuple(str(place.resolve()) for place in [*places, Path(yaml.__file__).parent])
    seen: list[str] = []
    watching = False

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if not watching:
            return
        if event in FORBIDDEN:
            seen.append(f"{event} {arguments!r:.200}")
        elif event == "open" or event in CHANGES:
            path = arguments[0]
            if isinstance(path, (str, bytes, os.PathLike)):
                real = os.path.realpath(os.fsdecode(path))
                inside = real.startswith(allowed if event == "open" else str(folder))
                if not inside:
                    seen.append(f"{event} {real}")

    sys.addaudithook(hook)
    for watched in (False, True):
        for place, (name, data) in enumerate(inputs):
            home = folder / f"{watched}{place}"
            home.mkdir()
            watching = watched
            try:
                check(name, data, home)
            finally:
                watching = False
            if seen:
                sys.exit(f"{name}, input {place}: {seen[0]}")
    print(len(inputs), "inputs were read, and nothing was executed")


if __name__ == "__main__":
    main()
