"""`--adapter` accepts several kinds of names, and an unusable one gives one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from functools import partial
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import requires
from pathlib import Path
from typing import Any, ClassVar

import pytest

from bpe_conformance.adapters import (
    BUILT_IN,
    AdapterError,
    AdapterUnavailable,
    CrashError,
    ProtocolError,
    loading,
    resolve,
    with_trainer,
)
from bpe_conformance.adapters.shapes.functions import is_written, train_by_file
from bpe_conformance.fixtures.answers import NoAnswer
from bpe_conformance.reference.textbook import Tokenizer, build_vocab, learn

MODULES = {
    "good": "class T:\n    class Inner: pass\n    def encode(self, text): return []\ndef make(): return T()\n"
    "made = T()\nnumber = 5\nclass Factory:\n    def __call__(self): return T()\nfactory = Factory()\n",
    "nameless": "class Meta(type):\n    def __dir__(cls): raise RuntimeError('no names')\n"
    "class T(metaclass=Meta): pass\ndef __dir__(): raise RuntimeError('no names')\n",
    "needs": "import no_such_thing_at_all\n",
    "syntax": "def f(:\n",
    "exits": "import sys\nsys.exit('bye\\nbye')\n",
    "raises": "\n\nraise ValueError('two\\nlines \\u20ac' + 'x' * 1000)\n",
    "base": "class Odd(BaseException): pass\nraise Odd('odd')\n",
    "interrupted": "raise KeyboardInterrupt\n",
    "trainers": "def train(input_path, vocab_size, special_tokens):\n"
    "    from bpe_conformance.reference.textbook import learn, build_vocab\n"
    "    text = input_path.read_bytes().decode('utf-8')\n"
    "    with open(input_path, newline='') as file: assert file.read() == text\n"
    "    merges = learn(text, vocab_size, special_tokens, tie_break='lex-smaller')\n"
    "    return build_vocab(merges, special_tokens), merges\n"
    "train.conventions = {'tie_break': 'lex-smaller'}\n"
    "def wrong(input_path, vocab_size, special_tokens): return 5\n"
    "def unfinished(input_path, vocab_size, special_tokens): pass\n"
    "def narrow(input_path, vocab_size): pass\n"
    "def late(input_path, vocab_size, special_tokens): return ({}, []) if vocab_size == 256 else 5\n"
    "def broken(input_path, vocab_size, special_tokens): return {}, [(b'a', b'b')]\n",
    "homework": "from trainers import train as run_train_bpe\n"
    "from bpe_conformance.reference.textbook import Tokenizer\n"
    "conventions = {'tie_break': 'lex-smaller'}\n"
    "def get_tokenizer(vocab, merges, special_tokens=None):\n"
    "    return Tokenizer(vocab, merges, special_tokens)\n",
    "trains": "import os\ndef run_train_bpe(input_path, vocab_size, special_tokens): pass\n",
    "skeleton": "def get_tokenizer(vocab, merges, special_tokens=None): raise NotImplementedError\n"
    "def run_train_bpe(input_path, vocab_size, special_tokens, **kwargs): raise NotImplementedError\n",
    "half": "from skeleton import get_tokenizer\nfrom trainers import train as run_train_bpe\n",
    "other_half": "from homework import get_tokenizer\nfrom skeleton import run_train_bpe\n",
    "only_skeleton": "from skeleton import run_train_bpe\n",
    "unfinished": "from trainers import unfinished as run_train_bpe\n",
    "only_trainer": "from trainers import train as run_train_bpe\n",
    "only_tokenizer": "from homework import get_tokenizer\n",
    "typo": "from homework import get_tokenizer, run_train_bpe as run_train_bp\n",
    "other_typo": "from homework import get_tokenizer as get_tokenizr, run_train_bpe\n",
    "late_skeleton": "def get_tokenizer(vocab, merges, special_tokens=None):\n"
    "    raise vocab[255] and NotImplementedError\n",
    "constants": "get_tokenizer = 5\n",
    "both_typos": "from homework import get_tokenizer as get_tokenizr, run_train_bpe as train\n",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    for name, source in MODULES.items():
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "inside.py").write_text("import pack.absent\n")
    (tmp_path / f"native{EXTENSION_SUFFIXES[0]}").write_bytes(b"no library")
    (tmp_path / "program.mjs").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in {*MODULES, "pack", "tests"}:
            del sys.modules[name]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("tikoken", "did you mean 'tiktoken'"),
        ("nonsense", "reference, textbook"),
        ("tinybpe-cl100", "did you mean 'tinybpe-cl100k' or 'tinybpe-o200k' or 'tinybpe'?"),
        ("a-b.T", "for your own class, write pkg.module:Class"),
        ("sub/good.py", "write sub.good:Class"),
        ("pack", "for a class or function in pack, write pack:Class"),
        ("homework:U", "it has get_tokenizer"),
        ("only_tokenizer:U", "it has get_tokenizer"),
        ("cmdd:node tok.js", "did you mean 'cmd'?"),
        ("refernce:m.json", "did you mean 'reference'?"),
        ("native:T", "importing native failed: ImportError: "),
        ("good.T", "good:T"),
        ("", "pkg.module:Class"),
        (":T", "pkg.module:Class"),
        ("good:", "pkg.module:Class"),
        ("good:T:U", "pkg.module:Class"),
        ("sub/good.py:T", "write sub.good:T"),
        ("./good.py:T", "write good:T"),
        ("good-thing:T", "not the name of a module"),
        ("pack..inside:T", "'pack..inside' is not the name of a module"),
        ("absent:T", "no module 'absent'"),
        ("absent.deep:T", "no module 'absent'"),
        ("good.deep:T", "good is a module, not a package"),
        ("pack.deep:T", "there is no module 'pack.deep'; looked in"),
        ("good:Tokenizer", "it has Factory, T, factory, make"),
        ("good:mak", "did you mean 'make'"),
        ("good:T.Outer", "good:T has no 'Outer'"),
        ("good:made", "instance of T; name the class, good:T"),
        ("good:number", "type int"),
        ("pack:inside", "pack has no 'inside'"),
        ("nameless:U", "nameless has no 'U'"),
        ("nameless:T.make", "nameless:T has no 'make'"),
        ("pack.inside:T", "ModuleNotFoundError: No module named 'pack.absent'"),
        ("needs:T", "No module named 'no_such_thing_at_all'"),
        ("needs:T", "needs.py:1"),
        ("syntax:T", "syntax.py:1"),
        ("exits:T", "sys.exit('bye"),
        ("exits:T", "exits.py:2"),
        ("raises:T", "ValueError: two lines"),
        ("raises:T", "raises.py:3"),
        ("base:T", "Odd: odd"),
        ("bpe_conformance:adapters", "is a module; name the class in it: bpe_conformance.adapters:Class"),
        ("cmd:", "names no program"),
        ("cmd:'", "quot"),
        ("cmd:/nowhere/program x", "cannot start /nowhere/program x"),
        ("cmd:true", "status 0"),
        ("cmd:echo hello", "hello"),
        (f"cmd:{sys.executable} -c 'import absent_module'", "No module named"),
        ("cs336:good", "get_tokenizer"),
        ("cs336:", "write cs336:module"),
        ("cs336:good:T", "'good:T' is not the name of a module; write cs336:pkg.module"),
        ("program.mjs", "there is no adapter 'program.mjs'; for a program, write 'cmd:PROGRAM program.mjs'"),
        ("node tok.js", "there is no adapter 'node tok.js'; for a program, write 'cmd:node tok.js'"),
        ("homework", "there is no adapter 'homework'; for a CS336 assignment, write cs336:homework"),
        ("trains", "there is no adapter 'trains'; for a CS336 assignment, write cs336:trains"),
        ("c336:homework", "did you mean 'cs336'?"),
        ("lamacpp:m.gguf", "did you mean 'llamacpp'?"),
        ("vllm:Qwen3-8B", "a server needs a class, see docs/engines.md"),
        ("pytest", "there is no adapter 'pytest'; for your own class"),
        ("cs336:good.py", "is a path; a module is named with dots: write good"),
        ("cs336:skeleton", "get_tokenizer and run_train_bpe both raise NotImplementedError; implement at least one"),
        ("cs336:late_skeleton", "late_skeleton: get_tokenizer raises NotImplementedError"),
        ("cs336:constants", "constants has neither get_tokenizer"),
        ("cs336:only_skeleton", "only_skeleton: run_train_bpe raises NotImplementedError"),
        ("good", "for a class or function in good, write good:Class"),
        ("pack.inside", "for a class or function in pack.inside, write pack.inside:Class"),
        ("../good.py:T", "run from the directory that contains it, and write good:T"),
        ("a-b/good.py:T", "run from the directory that contains it, and write good:T"),
        ("good-thing.py:T", "rename the file"),
        ("cs336:absent", "no module 'absent'"),
        *((f"{prefix}:", f"write {prefix}:MODULE:NAME") for prefix in ("encoding", "minbpe", "tokenizer-json")),
    ],
)
def test_unusable_adapter_gives_one_line_error(spec, words):
    with pytest.raises(AdapterError) as caught:
        resolve(spec)
    message = str(caught.value)
    assert words in message
    assert "\n" not in message
    assert message.isascii()
    assert len(message) < 700


def test_path_error_suggests_the_module(folder):
    with pytest.raises(AdapterError, match=r"dots: write pack\.inside:T$"):
        resolve(f"{folder}/pack/inside.py:T")
    for spec in ("good", f"{folder}/good.py"):
        with pytest.raises(AdapterError) as caught:
            resolve(spec)
        assert "textbook" not in str(caught.value)


@pytest.mark.parametrize(
    ("stderr", "reported"),
    [
        (
            "node:internal:1\n\nError: Cannot find x\n    at new NodeError (n:4)\n\nNode.js v20\n",
            "Error: Cannot find x",
        ),
        ("thread 'main' panicked at src/main.rs:2:5:\nno table\nnote: run with\n", "src/main.rs:2:5: no table"),
        ("starting\ngoing\n", "going"),
        ('  File "/errors/error.py", line 1\nKeyError: 5\n  File "/errors/error.py"\nbye\n', "KeyError: 5"),
    ],
)
def test_error_line_of_stderr_is_shown(folder, stderr, reported):
    (folder / "program.py").write_text(f"import sys\nsys.stderr.write({stderr!r})\nsys.exit(1)\n")
    with pytest.raises(AdapterError) as caught:
        resolve(f"cmd:{sys.executable} program.py")
    assert str(caught.value).endswith(reported)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (CrashError("start", "status 0"), "cmd:node a b: start: status 0"),
        (CrashError("start", "status 1", stderr="x\nbye"), "cmd:node a b: start: status 1; it wrote to stderr: bye"),
        (
            ProtocolError("start", "text"),
            "cmd:node a b: start: text; to see the messages, run bpe-conformance check-bridge 'cmd:node a b'",
        ),
    ],
)
def test_an_error_of_a_program_says_where_to_look(
    error: BaseException, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bridge(arguments: list[str]) -> object:
        raise error

    monkeypatch.setattr(loading, "bridge", bridge)
    with pytest.raises(AdapterError) as caught:
        resolve("cmd:node a b")
    assert str(caught.value) == message


def test_a_module_that_was_written_after_a_failed_import_is_found(folder: Path) -> None:
    with pytest.raises(AdapterError, match="there is no module 'written'"):
        resolve("written:T")
    before = folder.stat()
    (folder / "written.py").write_text("class T: pass\n")
    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))  # as if within one tick of the clock
    assert isinstance(resolve("written:T"), type)


def test_a_training_function_is_called_once_before_anything_is_tested():
    for name, reported in (
        ("wrong", "returned int"),
        ("unfinished", "returned None"),
        ("narrow", "cannot be called as"),
    ):
        with pytest.raises(AdapterError, match=f"trainers:{name} {reported}"):
            with_trainer(Tokenizer, f"trainers:{name}")


def test_interrupt_during_import_propagates():
    with pytest.raises(KeyboardInterrupt):
        resolve("interrupted:T")


def test_resolve_accepts_all_kinds_of_adapter():
    assert resolve("good:T").__name__ == "T"
    good = sys.modules["good"]
    assert resolve("good:T.Inner") is good.T.Inner
    assert resolve("good:make") is good.make
    assert resolve("good:factory") is good.factory
    assert sys.path[0] == str(Path.cwd())
    assert sys.path.count(str(Path.cwd())) == 1


def test_every_short_name_resolves():
    for name in BUILT_IN:
        try:
            assert callable(resolve(name))
        except AdapterUnavailable:
            continue
        except AdapterError:
            assert name == "reference"  # pragma: no cover


@pytest.mark.parametrize("package", ["tiktoken", "tokenizers", "rustbpe", "bpeasy"])
def test_missing_package_error_says_what_to_install(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = {"tokenizers": "huggingface"}.get(package, package)
    needed = next(one for one in requires("bpe-conformance") or () if one.endswith(f'extra == "{name}"'))
    monkeypatch.delitem(sys.modules, BUILT_IN[name].partition(":")[0], raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(AdapterUnavailable) as caught:
        resolve(name)
    assert isinstance(caught.value, ImportError)
    assert str(caught.value) == f"{package} is not installed; install it: pip install '{needed.partition(';')[0]}'"


def test_naming_an_adapter_imports_no_third_party_package():
    code = (
        "import sys\n"
        "from bpe_conformance.adapters import resolve\n"
        "resolve('textbook')\n"
        "assert not {'tiktoken', 'tokenizers'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


TEXT = "low lower\r\nnewest\n\u2028 €<|e|>low"


@pytest.mark.parametrize("kind", ["class", "function"])
def test_with_trainer_adds_train(kind):
    def make(vocab, merges, special_tokens=None, pattern=None):
        return Tokenizer(vocab, merges, special_tokens, pattern)

    target = Tokenizer if kind == "class" else make
    adapter = with_trainer(target, "trainers:train")
    assert adapter.conventions == {"tie_break": "lex-smaller"}
    trained = adapter.train(TEXT, 265, ["<|e|>"])
    merges = learn(TEXT, 265, ["<|e|>"], tie_break="lex-smaller")
    assert trained.merges == merges
    assert trained.vocab == build_vocab(merges, ["<|e|>"])
    assert trained.decode(trained.encode(TEXT)) == TEXT
    assert adapter(trained.vocab, trained.merges, ["<|e|>"]).encode(TEXT) == trained.encode(TEXT)
    assert Tokenizer.conventions == {}
    assert not hasattr(make, "train")


def test_trainer_is_tested_separately_from_the_encoder():
    trained = with_trainer(Tokenizer, "trainers:broken").train("ab", 257, [])
    assert (trained.vocab, trained.merges) == ({}, [(b"a", b"b")])
    with pytest.raises(ValueError, match="has no"):
        trained.encode("ab")
    with pytest.raises(TypeError, match="late returned int; expected a pair"):
        with_trainer(Tokenizer, "trainers:late").train("ab", 257, [])
    with pytest.raises(AdapterError, match="did you mean 'train'"):
        with_trainer(Tokenizer, "trainers:trian")


def test_trainer_works_with_an_isolated_adapter():
    from bpe_conformance.adapters.bridge.client import isolated

    adapter = isolated("textbook", "trainers:train")
    merges = learn(TEXT, 262, [], tie_break="lex-smaller")
    assert adapter.conventions == {"tie_break": "lex-smaller"}
    assert adapter.train(TEXT, 262, []).merges == merges
    outside = with_trainer(adapter, "trainers:train")
    assert outside.train(TEXT, 262, []).encode("low") == adapter.train(TEXT, 262, []).encode("low")
    adapter.close()


def test_cs336_adapter_trains_and_encodes():
    adapter = resolve("cs336:homework")
    assert adapter.conventions == {"tie_break": "lex-smaller"}
    trained = adapter.train(TEXT, 262, ["<|e|>"])
    assert trained.merges == learn(TEXT, 262, ["<|e|>"], tie_break="lex-smaller")
    assert trained.decode(trained.encode(TEXT)) == TEXT
    assert isinstance(adapter(trained.vocab, trained.merges), Tokenizer)


def test_cs336_adapter_supports_only_existing_functions():
    half = resolve("cs336:half")
    with pytest.raises(NotImplementedError):
        half({}, [])
    assert half.train("low", 258, []).merges
    only_trainer = resolve("cs336:only_trainer")
    assert only_trainer.train("low", 258, []).merges
    with pytest.raises(NotImplementedError):
        only_trainer({}, [])
    for name, why in {
        "only_tokenizer": "only_tokenizer has no run_train_bpe",
        "other_half": "run_train_bpe of other_half raises NotImplementedError",
        "typo": "typo has no run_train_bpe; did you mean run_train_bp?",
    }.items():
        with pytest.raises(NotImplementedError, match=f"^{re.escape(why)}$"):
            resolve(f"cs336:{name}").train("low", 258, [])
    with pytest.raises(NotImplementedError, match=r"^other_typo has no get_tokenizer; did you mean get_tokenizr\?$"):
        resolve("cs336:other_typo")({}, [])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("adapter", "there is no module 'adapter';*; to test tests/adapters.py, write cs336:tests.adapters"),
        ("good", "good has neither *; to test tests/adapters.py, write cs336:tests.adapters"),
        ("both_typos", "both_typos has neither *; did you mean get_tokenizr?"),
        ("tests.adapters", "tests.adapters has neither *; name the module that has them"),
    ],
)
def test_cs336_names_the_module_of_the_assignment(name: str, words: str, folder: Path) -> None:
    (folder / "tests").mkdir()
    (folder / "tests" / "adapters.py").touch()
    with pytest.raises(AdapterError) as caught:
        resolve(f"cs336:{name}")
    assert fnmatch(str(caught.value), words.replace("?", "[?]"))


def test_cs336_in_the_directory_of_the_assignments_module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "tests").mkdir()
    (folder / "tests" / "adapters.py").touch()
    monkeypatch.chdir(folder / "tests")
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry and Path(entry) != folder])
    with pytest.raises(AdapterError, match=r"an assignment, run from the directory above$"):
        resolve("cs336:tests.adapters")


@pytest.mark.parametrize("installed_first", [True, False])
def test_the_current_directory_comes_before_an_installed_module_of_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed_first: bool
) -> None:
    installed = tmp_path / "installed"
    installed.mkdir()
    (installed / "good.py").write_text("class T: pass\n")
    here = [str(Path.cwd())]
    monkeypatch.setattr(sys, "path", [str(installed), *here, *sys.path] if installed_first else [*here, str(installed)])
    assert hasattr(resolve("good:T"), "encode")


def test_an_import_that_fails_names_the_innermost_line(tmp_path: Path) -> None:
    (tmp_path / "outer.py").write_text("import raises\n")
    with pytest.raises(AdapterError, match=r"importing outer failed: ValueError: .* \(.*raises\.py:3\)$"):
        resolve("outer:T")


def test_an_import_that_fails_in_the_standard_library_names_the_line_that_called_it(tmp_path: Path) -> None:
    (tmp_path / "calls.py").write_text('from pathlib import Path\nPath("/no/such/file").read_text()\n')
    with pytest.raises(AdapterError, match=r"importing calls failed: FileNotFoundError: .* \(.*calls\.py:2\)$"):
        resolve("calls:T")


def test_what_a_training_function_learns_becomes_one_tokenizer_when_it_is_used() -> None:
    made = list[Tokenizer]()

    def make(vocab: dict[int, bytes], merges: list[tuple[bytes, bytes]], special: object) -> Tokenizer:
        made.append(Tokenizer(vocab, merges, special))
        vocab.clear()  # of its own
        merges.clear()
        return made[-1]

    def train(path: Path, vocab_size: int, special_tokens: list[str]) -> object:
        merges = learn(path.read_bytes().decode(), vocab_size, special_tokens)
        vocab = build_vocab(merges, special_tokens)
        special_tokens.clear()  # of its own
        return vocab, merges

    trained = train_by_file(train, make, "é\r\nlow low<|e|>", 260, ["<|e|>"])
    assert trained.merges == learn("é\r\nlow low<|e|>", 260, ["<|e|>"])
    assert not hasattr(trained, "_private")
    assert made == []
    assert trained.decode(trained.encode("low<|e|>")) == "low<|e|>"
    assert trained.encode("<|e|>") == [256]
    assert len(made) == 1
    assert (len(trained.vocab), len(trained.merges)) == (260, 3)


@pytest.mark.parametrize("error", [SystemExit("no"), KeyError("no"), MemoryError()])
def test_a_first_call_that_fails_is_left_to_the_tests(error: BaseException) -> None:
    def train(path: Path, vocab_size: int, special_tokens: list[str]) -> object:
        raise error

    assert is_written(train, "mine:train")


@pytest.mark.parametrize(
    ("result", "kind", "message"),
    [
        (None, NoAnswer, "train returned None; return (vocab, merges)"),
        (5, TypeError, "train returned int; expected a pair (vocab, merges)"),
        ((1, 2, 3), TypeError, "train returned tuple; expected a pair (vocab, merges)"),
    ],
)
def test_a_training_without_a_pair_is_an_error_of_the_function(
    result: object, kind: type[Exception], message: str
) -> None:
    def train(path: Path, vocab_size: int, special_tokens: list[str]) -> object:
        return result

    with pytest.raises(kind) as caught:
        train_by_file(train, Tokenizer, "low", 257, [])
    assert str(caught.value) == message
    with pytest.raises(kind, match="the training function returned"):
        train_by_file(partial(train), Tokenizer, "low", 257, [])  # without a name


def test_a_trainer_changes_nothing_but_train_and_its_conventions() -> None:
    class Target(Tokenizer):
        conventions: ClassVar = {"lookup": "bytes", "tie_break": "first-seen"}

    adapter: Any = with_trainer(Target, "trainers:train")
    assert adapter.conventions == {"lookup": "bytes", "tie_break": "lex-smaller"}
    assert Target.conventions == {"lookup": "bytes", "tie_break": "first-seen"}
    assert "train" not in vars(Target)

    def factory(*arguments: Any) -> Target:
        return Target(*arguments)

    carried = {name: object() for name in ("pattern", "model", "from_files", "from_tokenizer_json")}
    vars(factory).update(carried, conventions={"lookup": "bytes"})
    wrapped: Any = with_trainer(factory, "trainers:train")
    assert {name: getattr(wrapped, name) for name in carried} == carried
    assert wrapped.conventions == {"lookup": "bytes", "tie_break": "lex-smaller"}
    assert not hasattr(factory, "train")
    assert wrapped.train("low low", 258, []).merges == learn("low low", 258, [], tie_break="lex-smaller")


def test_a_stub_of_an_assignment_counts_as_written_and_fails_its_tests() -> None:
    with pytest.raises(NoAnswer, match=r"unfinished returned None; return \(vocab, merges\)"):
        resolve("cs336:unfinished").train("low", 258, [])  # type: ignore[attr-defined]


@pytest.mark.parametrize("special", [None, [], ["<|e|>"]])
def test_the_function_of_an_assignment_gets_the_special_tokens_as_they_are(
    special: list[str] | None, tmp_path: Path
) -> None:
    (tmp_path / "gets_special.py").write_text(
        "def get_tokenizer(vocab, merges, special_tokens): return special_tokens\n"
    )
    assert resolve("cs336:gets_special")({}, [], special) is special  # type: ignore[operator]
