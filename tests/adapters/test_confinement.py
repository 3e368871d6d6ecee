"""Where the kernel confines nothing, an audit hook refuses what a submission must not do, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module, util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from bpe_conformance.adapters.bridge import confinement
from bpe_conformance.adapters.bridge.confinement import audit_hook

READ, WRITE = os.O_RDONLY, os.O_WRONLY | os.O_CREAT


@pytest.fixture
def other_session() -> Iterator[int]:
    """Return a process of another session. Process 1 need not be one: in a container it may be ours."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        yield process.pid
        process.kill()


def events(folder: Path, other_session: int) -> dict[str, list[tuple[str, tuple[Any, ...]]]]:
    """Return what is permitted and what is refused."""
    own, read, secret, other = (str(folder / name) for name in ("own", "read", "read/secret", "other"))
    return {
        "permitted": [
            ("open", (f"{own}/x", "w", WRITE)),
            ("open", (os.fsencode(f"{own}/x"), "r", READ)),
            ("open", (own, "r", READ)),
            ("open", (f"{read}/x", "r", READ)),
            ("open", (f"{read}/secrets", "r", None)),
            ("open", (3, "w", WRITE)),
            ("open", (None, "r", READ)),
            ("os.rename", (f"{own}/x", f"{own}/y", -1, -1)),
            ("os.mkdir", (Path(own, "z"), 0o777, -1)),
            ("socket.connect", (None, "/run/a-socket")),
            ("socket.connect", (None, b"/run/a-socket")),
            ("os.kill", (os.getpid(), 9)),
            ("os.kill", (0, 15)),
            ("resource.prlimit", (0, 7, None)),
            ("resource.prlimit", (os.getpid(), 7, None)),
            ("import", ("os", None, None, None, None)),
        ],
        "refused": [
            ("open", (f"{read}/x", "w", WRITE)),
            ("open", (f"{read}/x", "w", os.O_RDWR)),
            ("open", (f"{read}/x", "w", os.O_TRUNC)),
            ("open", (f"{secret}/x", "r", READ)),
            ("open", (secret, "r", READ)),
            ("open", (f"{other}/x", "r", READ)),
            ("open", (os.fsencode(f"{other}/x"), "r", READ)),
            ("open", (Path(other, "x"), "r", READ)),
            ("open", (f"{own}/../other/x", "r", READ)),
            ("open", (f"{own}er", "w", WRITE)),
            ("open", (f"{own}/link", "r", READ)),
            ("os.rename", (f"{own}/x", f"{other}/y", -1, -1)),
            ("os.rename", (f"{other}/x", f"{own}/y", -1, -1)),
            ("os.remove", (f"{read}/x", -1)),
            ("os.chmod", (Path(other), 0o777, -1)),
            ("subprocess.Popen", ("ls", ["ls"], None, None)),
            ("os.exec", ("ls", ["ls"], None)),
            ("os.posix_spawn", ("ls", ["ls"], None)),
            ("os.spawn", (os.P_WAIT, "ls", ["ls"], None)),
            ("os.startfile", ("ls", None)),
            ("os.system", ("ls",)),
            ("socket.connect", (None, ("127.0.0.1", 80))),
            ("socket.bind", (None, ("127.0.0.1", 80))),
            ("socket.getaddrinfo", ("localhost", 80, 0, 0, 0)),
            ("os.kill", (-1, 15)),
            ("os.kill", (other_session, 15)),
            ("os.killpg", (-5, 15)),
            ("resource.prlimit", (other_session, 7, None)),
        ],
    }


@pytest.mark.parametrize("kind", ["permitted", "refused"])
def test_the_hook_tells_what_a_submission_may_do(kind: str, tmp_path: Path, other_session: int) -> None:
    for name in ("own", "read/secret", "other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "own" / "link").symlink_to(tmp_path / "other" / "x")
    several = [str(tmp_path / "elsewhere")]  # a rule holds for each directory
    hook = audit_hook(
        [*several, str(tmp_path / "read")],
        [*several, str(tmp_path / "read" / "secret")],
        [str(tmp_path / "own"), *several],
    )
    for event, arguments in events(tmp_path, other_session)[kind]:
        try:
            hook(event, arguments)
            found = "permitted"
        except PermissionError:
            found = "refused"
        assert found == kind, (event, arguments)


BOTH = """
import json, os, sys
from bpe_conformance.adapters.bridge.confinement import audit_hook, landlocked
*limits, files = json.loads(sys.argv[1])
def permitted(call, *arguments):
    try:
        return call(*arguments) or True
    except PermissionError:
        return False
asked = [(file, flags) for file in files for flags in (os.O_RDONLY, os.O_WRONLY)]
hook = audit_hook(*limits)
by_hook = [permitted(hook, "open", (file, None, flags)) for file, flags in asked]
assert landlocked(*limits)
by_kernel = [bool(permitted(os.open, *one)) for one in asked]
print(json.dumps([[*one] for one in zip(asked, by_hook, by_kernel)]))
"""


@pytest.mark.skipif(not confinement.has_landlock(), reason="Landlock")
def test_the_kernel_and_the_hook_permit_the_same_files(tmp_path: Path) -> None:
    files = [
        *("read/x", "read/deep/x", "read/deep/open/x", "read/secretly", "file", "own/x", "own/deep/x"),
        *("read/secret/x", "read/deep/secret/x", "read/deep/hidden", "closed/x", "closed/deep/x", "other/x", "files"),
    ]
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for link, target in (("read/link", "other/x"), ("read/deep/link", "read/x"), ("own/link", "read/secret/x")):
        (tmp_path / link).symlink_to(tmp_path / target)
        files.append(link)
    readable, hidden = ("read", "file", "closed"), ("read/secret", "read/deep/secret", "read/deep/hidden", "closed")
    given = [[str(tmp_path / name) for name in some] for some in (readable, hidden, ("own",), files)]
    done = subprocess.run([sys.executable, "-c", BOTH, json.dumps(given)], capture_output=True, check=True)
    found = json.loads(done.stdout)
    assert [one for one, by_hook, by_kernel in found if by_hook != by_kernel] == []
    read = {file.removeprefix(f"{tmp_path}/") for (file, flags), _, is_permitted in found if is_permitted and not flags}
    assert read == {*files[:7], "read/deep/link"}


class Kernel:
    """A kernel with a version of Landlock, of which one step can fail."""

    def __init__(self, version: int, rules: int = 5, privileges: int = 0, restricted: int = 0) -> None:
        self.version, self.rules, self.privileges, self.restricted = version, rules, privileges, restricted
        self.sizes: list[int] = []
        self.filters: list[int] = []

    def syscall(self, number: int, *arguments: Any) -> int:
        if number == confinement._CREATE:
            if arguments[2] == 1:
                return self.version
            self.sizes.append(arguments[1])
            return self.rules
        return self.restricted if number == confinement._RESTRICT else 0

    def prctl(self, operation: int, *_: Any) -> int:
        if operation == confinement._SECCOMP:
            self.filters.append(operation)
        return self.privileges


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock")
@pytest.mark.parametrize(
    ("kernel", "sizes", "confines"),
    [
        (Kernel(-1), [], False),
        (Kernel(0), [], False),
        (Kernel(1), [8], True),
        (Kernel(3), [8], True),
        (Kernel(4), [16], True),
        (Kernel(5), [16], True),
        (Kernel(6), [24], True),
        (Kernel(7), [24], True),
        (Kernel(6, rules=0), [24], True),
        (Kernel(6, rules=-1), [24], False),
        (Kernel(6, privileges=-1), [24], False),
        (Kernel(6, restricted=-1), [24], False),
    ],
)
def test_a_process_is_confined_only_if_each_step_of_the_kernel_succeeds(
    kernel: Kernel, sizes: list[int], confines: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confinement.ctypes, "CDLL", lambda _: kernel)
    assert confinement.has_landlock() == (kernel.version > 0)
    assert confinement.landlocked(["/no/such"], [], ["/no/such"]) == confines
    assert kernel.sizes == sizes


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp")
def test_only_a_machine_whose_system_calls_are_known_gets_a_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement.ctypes, "CDLL", lambda _: kernel)
    for machine, filters in (("riscv64", 0), ("x86_64", 1), ("aarch64", 1)):
        kernel = Kernel(6)
        monkeypatch.setattr(confinement.os, "uname", lambda name=machine: SimpleNamespace(machine=name))
        confinement._refuse_calls()
        assert len(kernel.filters) == filters


def test_a_submission_can_neither_import_nor_find_what_is_blocked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / confinement.SUBMISSION).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(util, "find_spec", util.find_spec)
    monkeypatch.setattr(confinement, "landlocked", lambda *_: True)
    monkeypatch.setattr(confinement, "_refuse_calls", lambda: None)
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    confinement.Confinement(str(tmp_path), ["colorsys"]).enter()
    assert Path.cwd() == tmp_path / confinement.SUBMISSION
    with pytest.raises(ModuleNotFoundError, match="a submission cannot import colorsys"):
        import_module("colorsys")
    assert Path(confinement.tried_file(str(tmp_path))).read_text() == ""  # this file is no submission's
    (Path.cwd() / "mine.py").write_text("import colorsys.deep", "utf-8")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    with pytest.raises(ModuleNotFoundError, match=r"\(--allow-import colorsys would permit it\)"):
        import_module("mine")
    assert Path(confinement.tried_file(str(tmp_path))).read_text("ascii") == "colorsys\n"
    loaded = ModuleType("colorsys")  # if the parent is loaded, Python looks only for the module inside
    loaded.__path__ = []
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "colorsys", loaded)
        with pytest.raises(ModuleNotFoundError, match=r"colorsys\.deep \(--allow-import colorsys would"):
            import_module("colorsys.deep")
    assert util.find_spec("colorsys") is None  # as for a package that is not installed
    assert util.find_spec("json") is not None


def test_a_file_of_the_submission_may_have_the_name_of_a_refused_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bpe.py").touch()
    (tmp_path / "rank").mkdir()
    (tmp_path / "rank" / "__init__.py").touch()
    (tmp_path / "rank" / "inner.py").touch()
    tried = os.open(tmp_path / "tried", os.O_WRONLY | os.O_CREAT)
    refusal = confinement._Refusal(["bpe", "rank", "gone"], tried)
    for name, path, file in (
        ("bpe", None, "bpe.py"),
        ("rank", None, "rank/__init__.py"),
        ("rank.inner", [str(tmp_path / "rank")], "rank/inner.py"),
    ):
        found = refusal.find_spec(name, path)
        assert found is not None
        assert found.origin == str(tmp_path / file)
    installed = tmp_path.parent / "installed"
    installed.mkdir()
    (installed / "inner.py").touch()
    for name, path in (("gone", None), ("rank.inner", [str(installed)])):
        with pytest.raises(ModuleNotFoundError, match=f"a submission cannot import {name} "):
            refusal.find_spec(name, path)
    os.close(tried)
    assert refusal.find_spec("json", None) is None


@pytest.mark.parametrize("name", ["none", "none.inner", "os.inner", "made", "made.inner"])
def test_a_module_without_files_can_be_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "made", ModuleType("made"))  # without a spec, as __main__ is
    assert [*confinement._files(name)] == []


def test_the_files_of_a_refused_module_are_its_own_and_those_to_which_they_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "__init__.py").touch()
    (tmp_path / "elsewhere.py").touch()
    (tmp_path / "linked").symlink_to("elsewhere")
    (tmp_path / "linked_file.py").symlink_to("elsewhere.py")
    monkeypatch.syspath_prepend(tmp_path)
    assert {*confinement._files("linked")} == {str(tmp_path / "elsewhere")}
    assert {*confinement._files("linked_file")} == {str(tmp_path / "elsewhere.py")}
