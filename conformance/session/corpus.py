"""Compares GPT-2 ids of the implementation and of tiktoken's engine on real text of any size."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bpe_conformance.fixtures import END_OF_TEXT, PATTERNS, gpt2, gpt2_model
from bpe_conformance.fixtures.one_line import ascii_only
from bpe_conformance.fixtures.yaml_file import SpecError

from ..answer import EncodingDivergence, Ids, first_difference
from ..cases.dependence import ask
from ..implementation.implementation import Implementation
from ..operations import Encode, Question
from ..outcome import Expectation, Mismatch

BLOCK = 1 << 16
TIMEOUT_FACTOR = 60


@dataclass(frozen=True)
class Corpus:
    """Files to compare. `number` counts the corpora of this name in a run, from 1."""

    name: str
    files: tuple[Path, ...]
    number: int = 1

    @property
    def id(self) -> str:
        return f"corpus-{self.name}" + (f"-{self.number}" if self.number > 1 else "")


def find(path: str) -> Corpus:
    """Return a file, the files of a directory, or for `stdlib` the standard library's Python sources."""
    is_stdlib = path == "stdlib"
    root = Path(sysconfig.get_path("stdlib")) if is_stdlib else Path(path)
    files = [root] if root.is_file() else sorted(root.rglob("*.py" if is_stdlib else "*"))
    files = [file for file in files if file.is_file() and not (is_stdlib and "site-packages" in file.parts)]
    if not any(file.stat().st_size for file in files):
        raise SpecError(f"{path}: there is no text here; name a file, a directory with files, or stdlib")
    name = path if is_stdlib else (root if root.is_file() else root.resolve()).name
    return Corpus(ascii_only(name), tuple(files))


@lru_cache(maxsize=1)
def _tiktoken() -> Callable[[str], list[int]]:
    import tiktoken

    vocab, _ = gpt2()
    ranks = {token: index for index, token in vocab.items() if index < 50256}
    special = {END_OF_TEXT: 50256}
    engine = tiktoken.Encoding("gpt2", pat_str=PATTERNS["gpt2"], mergeable_ranks=ranks, special_tokens=special)
    return lambda text: list(engine.encode(text, allowed_special="all"))


def check_engine() -> None:
    try:
        import tiktoken  # noqa: F401
    except ImportError:
        install = "pip install 'tiktoken>=0.12'"
        raise SpecError(f"--bpe-corpus compares with tiktoken, which is not installed: {install}") from None


def blocks(file: Path) -> Iterator[str]:
    """Yield the text of a file in blocks that end at a line end, with U+FFFD for invalid UTF-8."""
    text = file.read_bytes().decode("utf-8", "replace")
    start = 0
    while start < len(text):
        end = text.find("\n", start + BLOCK) + 1 or len(text)
        yield text[start:end]
        start = end


def is_utf8(file: Path) -> bool:
    try:
        file.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def compare(corpus: Corpus, implementation: Implementation) -> Mismatch | None:
    """Return the first difference, or None. Each block of about 64 kB is encoded separately."""
    engine = _tiktoken()
    model = gpt2_model()
    for file in corpus.files:
        for text in blocks(file):
            expected = Ids(tuple(engine(text)))
            asked = Question(Encode(text), model, f"a block of {ascii_only(str(file))}")
            with implementation.time_limit(TIMEOUT_FACTOR):
                answer = ask(asked, implementation)
            if answer != expected:
                where = None
                if isinstance(answer, Ids):
                    first = first_difference(expected.ids, answer.ids)
                    before = sum(len(model.vocab[index]) for index in expected.ids[:first])
                    where = EncodingDivergence(first, before)
                return Mismatch(asked, Expectation((expected,), "tiktoken"), answer, where)
    return None
