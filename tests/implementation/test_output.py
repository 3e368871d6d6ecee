"""A change of process-wide state fails the test that made it and does not affect later tests."""

from __future__ import annotations

import contextlib
import locale
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.project import Project

from bpe_conformance.fixtures.answers import restored
from bpe_conformance.implementation import output
from bpe_conformance.implementation.output import CUT, KEPT, reused_folders, scratch_folder, shown

posix = pytest.mark.skipif(os.name != "posix", reason="directories of POSIX")

MOVING = """
import locale, os
from collections.abc import Callable
from pathlib import Path
from bpe_conformance.reference.textbook import Tokenizer as Right

before = locale.setlocale(locale.LC_ALL)

class Moving(Right):
    def encode(self, text):
        if not Path("mine.py").exists() or locale.setlocale(locale.LC_ALL) != before:
            raise ValueError("the test before has left something")
        act = getattr(self, "act_" + text, None)
        if act is not None:
            act()
        return super().encode(text)

    def act_hang(self): os.chdir("/")
    def act_swallow(self):
        locale.setlocale(locale.LC_ALL, "C" if locale.setlocale(locale.LC_CTYPE) != "C" else "C.UTF-8")
    def act_exit(self):
        os.chdir(os.sep)
        raise ValueError("in another directory")
    def act_base(self):
        here = os.getcwd()
        os.mkdir("back"); os.chdir("back"); os.chdir(here); os.rmdir("back")
    def act_escape(self):
        os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
"""
FAILED = {"act-hang", "act-swallow", "act-exit", "act-escape"}


@pytest.mark.slow
@posix
@pytest.mark.parametrize("options", [(), ("--bpe-isolate",)], ids=["in-process", "isolated"])
def test_a_change_fails_the_test_that_made_it(project: Project, options: tuple[str, ...]) -> None:
    project.write("moving.py", MOVING)
    result = project.run("moving:Moving", "-v", "--bpe-write-known-failures", "known.yaml", *options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    listed = (project.path / "known.yaml").read_text("utf-8").splitlines()[1:]
    assert {line.partition(":")[0] for line in listed} == FAILED
    output = " ".join(result.stdout.str().split())
    assert "the tokenizer changed the current directory to /; leave it as it is" in output
    assert "the tokenizer changed the locale" in output


def test_the_directory_is_restored_after_an_exception(tmp_path: Path) -> None:
    before = Path.cwd()
    with contextlib.suppress(KeyError), restored() as changes:
        os.chdir(tmp_path)
        raise KeyError
    assert Path.cwd() == before
    assert changes == [f"the tokenizer changed the current directory to {tmp_path}; leave it as it is"]


@posix
def test_removed_directory_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, gone = tmp_path / "here", tmp_path / "gone"
    here.mkdir()
    gone.mkdir()
    monkeypatch.chdir(here)
    with restored() as changes:
        os.chdir(gone)
        gone.rmdir()
    assert changes == ["the tokenizer changed the current directory to one that no longer exists; leave it as it is"]
    with restored() as changes:
        os.chdir(tmp_path)
        here.rmdir()
    (change,) = changes
    assert change.startswith(
        f"the tokenizer changed the current directory to {tmp_path}, and the suite cannot return to "
    )
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    with restored() as changes:
        pass
    assert changes == []


def test_the_locale_is_restored() -> None:
    before = locale.setlocale(locale.LC_CTYPE)
    other = next((name for name in ("C", "C.UTF-8", "C.utf8", "") if _exists(name) and name != before), None)
    if other is None:
        pytest.skip("one locale only")
    with restored() as changes:
        locale.setlocale(locale.LC_CTYPE, other)
        now = locale.setlocale(locale.LC_CTYPE)
    assert locale.setlocale(locale.LC_CTYPE) == before
    assert changes == (
        [f"the tokenizer changed the locale (LC_CTYPE to {now}); leave it as it is"] if now != before else []
    )


@pytest.mark.parametrize("category", ["CTYPE", "COLLATE", "TIME", "MONETARY", "NUMERIC", "MESSAGES"])
def test_each_part_of_the_locale_is_restored(category: str, monkeypatch: pytest.MonkeyPatch) -> None:
    number, now = getattr(locale, f"LC_{category}"), dict.fromkeys(range(20), "before")

    def setlocale(which: int, name: str | None = None) -> str:
        now[which] = name or now[which]
        return now[which]

    monkeypatch.setattr(locale, "setlocale", setlocale)
    with restored() as changes:
        locale.setlocale(number, "after")
    assert now[number] == "before"
    assert changes == [f"the tokenizer changed the locale (LC_{category} to after); leave it as it is"]


def _exists(name: str) -> bool:
    with restored():
        try:
            locale.setlocale(locale.LC_CTYPE, name)
        except locale.Error:
            return False
    return True


def test_a_directory_that_is_moved_or_replaced_is_removed() -> None:
    with scratch_folder() as folder:
        moved = folder.rename(folder.with_name("moved"))
        (moved / "file").touch()
    assert not moved.exists()
    with scratch_folder() as folder:
        folder.rmdir()
        folder.write_text("a file")
    assert not folder.exists()
    assert not folder.parent.exists()


def test_a_directory_is_used_again_under_another_name_until_the_run_ends() -> None:
    with reused_folders():
        with scratch_folder() as first, scratch_folder() as beside:
            (first / "vocab.json").write_text("{}")
            identity = first.stat().st_ino
        with scratch_folder() as second:
            assert second not in (first, beside)
            assert [*second.iterdir()] == []
            assert second.stat().st_ino == identity
            with reused_folders(), scratch_folder() as inner:
                assert inner.parent not in (first.parent, beside.parent)
            assert not inner.parent.exists()
            assert second.exists()
        assert not first.exists()
    assert not any(folder.parent.exists() for folder in (first, beside, second))


def locked(folder: Path) -> None:
    folder.chmod(0o500)


def replaced(folder: Path) -> None:
    other = folder.with_name("other")
    other.mkdir()
    folder.rmdir()
    other.rename(folder)


@pytest.mark.parametrize(
    "change",
    [
        locked,
        replaced,
        lambda folder: folder.rename(folder.with_name("moved")),
        lambda folder: (folder / "inside").mkdir(),
        lambda folder: (folder.parent / "beside").touch(),
    ],
)
def test_a_directory_that_was_changed_is_not_used_again(change: Callable[[Path], object]) -> None:
    with reused_folders():
        with scratch_folder() as folder:
            change(folder)
        assert not folder.parent.exists()
        with scratch_folder() as after:
            assert after.parent != folder.parent
            assert [*after.parent.iterdir()] == [after]


def test_a_directory_that_another_process_removed_is_not_used_again() -> None:
    with reused_folders():
        with scratch_folder() as folder:
            pass
        shutil.rmtree(folder.parent)
        with scratch_folder() as after:
            assert after.is_dir()
        with scratch_folder() as again:
            assert again.parent == after.parent


@posix
def test_captured_output_is_cut_after_what_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    for length in (output.KEPT, output.KEPT + 1, 3 * output.KEPT):
        for descriptor in (1, 2):
            os.write(descriptor, b"x" * length)
        output.cut_captured()
        captured = capfd.readouterr()
        kept = "x" * output.KEPT + output.CUT.decode() * (length > output.KEPT)
        assert (captured.out, captured.err) == (kept, kept)


def test_captured_output_is_shown_as_a_few_printable_characters() -> None:
    assert shown("a\tb \x1b[2J\u20ac") == "a    b \\x1b[2J\\u20ac"
    assert len(shown("\x1b" * 2 * KEPT)) == KEPT + len(CUT)
