"""No test is skipped because of an incorrect answer, and nothing that was skipped stays unsaid."""

from __future__ import annotations

import pytest
from helpers.project import Project, states

SPLITTING = """
from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.reference.textbook import Tokenizer as Right

class Letters(Right):
    "Splits off single letters where a pattern is given."
    def __init__(self, vocab, merges, special_tokens=None, pattern=None):
        super().__init__(vocab, merges, special_tokens, pattern and pattern.replace("+", ""))

class Raising(Right):
    def __init__(self, vocab, merges, special_tokens=None, pattern=None):
        if pattern is not None:
            raise ValueError("only my own pattern")
        super().__init__(vocab, merges, special_tokens)

    @classmethod
    def train(cls, text, vocab_size, special_tokens):
        return Right.train(text, vocab_size, special_tokens)

class Own(Right):
    "Has one pattern, and declares it."
    pattern = PATTERNS["llama3"]

    def __init__(self, vocab, merges, special_tokens=None):
        super().__init__(vocab, merges, special_tokens, self.pattern)

    @classmethod
    def train(cls, text, vocab_size, special_tokens):
        return Right.train(text, vocab_size, special_tokens, cls.pattern)

class OwnIsWrong(Own):
    def __init__(self, vocab, merges, special_tokens=None):
        Right.__init__(self, vocab, merges, special_tokens, PATTERNS["o200k"])

    @classmethod
    def train(cls, text, vocab_size, special_tokens):
        return Right.train(text, vocab_size, special_tokens, PATTERNS["gpt2"])
"""


def run(project: Project, adapter: str, *options: str) -> pytest.RunResult:
    return project.pytester.runpytest_inprocess("conformance", "--adapter", adapter, *options)


def test_a_wrong_split_under_a_pattern_fails(project: Project) -> None:
    project.write("splitting.py", SPLITTING)
    result = run(project, "splitting:Letters", "--bpe-section", "SPLIT", "-k", "cl100k")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["verdict * encoder * FAIL: * MUST tests fail*"])


def test_an_exception_for_a_pattern_is_quoted(project: Project) -> None:
    project.write("splitting.py", SPLITTING)
    result = run(project, "splitting:Raising", "--bpe-section", "SPLIT", "-k", "not law")
    assert result.ret == pytest.ExitCode.OK
    printed = " ".join(result.stdout.str().split())
    assert (
        "note the constructor refuses the patterns cl100k, cl100k-2023, o200k, llama3, qwen2, none, triads" in printed
    )
    assert "raised ValueError: only my own pattern" in printed
    assert "skipped the constructor takes no pattern" in printed


@pytest.mark.parametrize(
    ("adapter", "status"), [("Own", pytest.ExitCode.OK), ("OwnIsWrong", pytest.ExitCode.TESTS_FAILED)]
)
def test_a_declared_pattern_has_its_golden_cases(project: Project, adapter: str, status: pytest.ExitCode) -> None:
    project.write("splitting.py", SPLITTING)
    result = run(project, f"splitting:{adapter}", "-v", "-k", "llama3 and not law")
    assert result.ret == status
    found = states(result)
    assert len(found) > 20
    assert "SKIPPED" not in {state for name, state in found.items() if name.startswith("split-")}
    failed = {name for name, state in found.items() if state == "FAILED"}
    assert bool(failed) is (status != pytest.ExitCode.OK)
    assert {name.partition("-")[0] for name in failed} <= {"split", "train", "stream"}


BYTES_ONLY = """
from bpe_conformance.reference.textbook import Tokenizer as Right

class BytesOnly:
    def __init__(self, vocab, merges, special_tokens=None):
        self._right = Right(vocab, merges, special_tokens)

    def decode_bytes(self, ids):
        return self._right.decode_bytes(ids)

class Nothing(BytesOnly):
    def decode_bytes(self, ids):
        return b""

class SkipsUnknown(BytesOnly):
    def decode_bytes(self, ids):
        return b"".join(self._right.vocab.get(index, b"") for index in ids)
"""


def test_decode_bytes_alone_has_a_verdict(project: Project) -> None:
    project.write("bytes_only.py", BYTES_ONLY)
    right = run(project, "bytes_only:BytesOnly", "--bpe-section", "DECODE", "-k", "not law")
    assert right.ret == pytest.ExitCode.OK
    right.stdout.fnmatch_lines(["verdict       PASS: decoder (* MUST tests)*"])
    for wrong, case in (("Nothing", "decode-bytes-euro"), ("SkipsUnknown", "decode-unknown-next")):
        result = run(project, f"bytes_only:{wrong}", "--bpe-case", case, "--bpe-strict")
        assert result.ret == pytest.ExitCode.TESTS_FAILED, wrong
        result.stdout.fnmatch_lines(["decode_bytes(*"])


ALONE = """
import codecs

from bpe_conformance.reference import textbook

class Deltas:
    def __init__(self, vocab, merges, special_tokens=None):
        self.vocab = vocab

    def decode_iterable(self, ids):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for index in ids:
            yield decoder.decode(self.vocab[index])
        yield decoder.decode(b"", True)

class LosesTheEnd(Deltas):
    def decode_iterable(self, ids):
        yield from list(super().decode_iterable(ids))[:-1]

class Spans:
    def __init__(self, vocab, merges, special_tokens=None):
        self._right = textbook.Tokenizer(vocab, merges, special_tokens)

    def encode_with_offsets(self, text):
        return self._right.encode_with_offsets(text)

class FromOne(Spans):
    def encode_with_offsets(self, text):
        ids, spans = super().encode_with_offsets(text)
        return ids, [(start + 1, end + 1) for start, end in spans]
"""


@pytest.mark.slow
def test_a_class_that_only_streams_text_or_only_gives_offsets_has_a_verdict(project: Project) -> None:
    project.write("alone.py", ALONE)
    for right, wrong, name, clauses in (
        ("Deltas", "LosesTheEnd", "detokenizer", "DETOK-END"),
        ("Spans", "FromOne", "offsets", "OFFSET"),
    ):
        options = ("-k", "not law", f"--bpe-clause={clauses}")
        result = run(project, f"alone:{right}", *options)
        assert result.ret == pytest.ExitCode.OK
        result.stdout.fnmatch_lines([f"verdict       PASS: {name} (* MUST tests)*"])
        assert run(project, f"alone:{wrong}", *options).ret == pytest.ExitCode.TESTS_FAILED, wrong


ABSENT = """
from bpe_conformance.reference.textbook import Tokenizer as Right

class InTheConstructor(Right):
    def __init__(self, vocab, merges, special_tokens=None, pattern=None):
        super().__init__(vocab, merges, special_tokens, pattern)
        self.absent = [token for token in special_tokens or () if token.encode() not in vocab.values()]
        self.check("".join(self.absent))

    def check(self, text):
        if any(token in text for token in self.absent):
            raise KeyError("a special token without an entry")

class WithTheToken(InTheConstructor):
    def check(self, text): ...

    def encode(self, text, **keywords):
        InTheConstructor.check(self, text)
        return super().encode(text, **keywords)

class ForEveryText(WithTheToken):
    def encode(self, text, **keywords):
        if self.absent:
            raise KeyError("a special token without an entry")
        return super().encode(text, **keywords)

class ForEveryId(WithTheToken):
    def decode(self, ids):
        if self.absent:
            raise KeyError("a special token without an entry")
        return super().decode(ids)
"""


@pytest.mark.parametrize(
    ("adapter", "failing"),
    [
        ("InTheConstructor", set()),
        ("WithTheToken", set()),
        ("ForEveryText", {"special-absent-other-text", "law-special-absent"}),
        ("ForEveryId", {"special-absent-keeps-ends", "special-absent-keeps-entries"}),
    ],
)
def test_an_absent_special_token_may_be_refused_only_where_it_occurs(
    project: Project, adapter: str, failing: set[str]
) -> None:
    project.write("absent.py", ABSENT)
    result = run(project, f"absent:{adapter}", "-v", "--bpe-clause", "SPECIAL-ABSENT-2")
    assert {name for name, state in states(result).items() if state == "FAILED"} == failing


READERS = """
from pathlib import Path
from bpe_conformance.reference import Tokenizer as Right

class LosesTheLast(Right):
    "Reads a file as openai/tiktoken#598 describes."
    @classmethod
    def from_files(cls, vocab, merges, special_tokens=None):
        text = Path(merges).read_text("utf-8", newline="") if False else Path(merges).read_bytes().decode("utf-8")
        kept = text.replace("\\r\\n", "\\n").split("\\n")[:-1]
        Path(merges).write_text("".join(f"{line}\\n" for line in kept), "utf-8")
        return super().from_files(vocab, merges, special_tokens)

class Refuses(Right):
    @classmethod
    def from_files(cls, vocab, merges, special_tokens=None):
        if not Path(merges).read_bytes().endswith(b"\\n"):
            raise ValueError("the file is not complete")
        return super().from_files(vocab, merges, special_tokens)
"""


def test_a_reader_may_refuse_a_file_without_a_final_line_end_and_not_lose_its_last_merge(project: Project) -> None:
    project.write("readers.py", READERS)
    loses = run(project, "readers:LosesTheLast", "--bpe-clause", "FILE-LINES")
    assert loses.ret == pytest.ExitCode.TESTS_FAILED
    loses.stdout.fnmatch_lines(["verdict       files      FAIL: 4 of 5 MUST tests fail*"])
    refuses = run(project, "readers:Refuses", "--bpe-clause", "FILE-LINES")
    assert refuses.ret == pytest.ExitCode.OK
    refuses.stdout.fnmatch_lines(
        ["warnings      4 SHOULD tests failed (FILE-LINES-1 4)*", "verdict       PASS: files (5*"]
    )


METHODS = """
from mine import Right

class TypeErrors(Right):
    def encode(self, text):
        raise TypeError("cannot encode")

class Stub(Right):
    def encode(self, text):
        pass

class BatchOfStub(Stub):
    def encode_iterable(self, chunks):
        pass
    def encode_batch(self, texts):
        return [self.encode(text) for text in texts]

class OnlyStub:
    def __init__(self, vocab, merges, special_tokens=None): ...
    def encode(self, text): pass

class Triple(Right):
    @classmethod
    def train(cls, text, vocab_size, special_tokens):
        trained = Right.train(text, vocab_size, special_tokens)
        return trained.vocab, trained.merges, None

class NoTrain(Right):
    train = classmethod(lambda cls, text, vocab_size, special_tokens: None)

class NoFiles(Right):
    from_files = classmethod(lambda cls, vocab, merges, special_tokens=None: None)

class NoJson(Right):
    from_tokenizer_json = classmethod(lambda cls, path: None)

def none(*arguments):
    pass

class Chunks(Right):
    "Its stream depends on encode, which is wrong."
    def encode(self, text):
        return [97] * len(text.encode("utf-8", "replace"))
    def encode_iterable(self, chunks):
        return iter(self.encode("".join(chunks)))
"""


def test_an_encode_that_always_raises_fails(project: Project) -> None:
    project.write("methods.py", METHODS)
    result = project.judge("methods:TypeErrors")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["verdict       encoder    FAIL: 13 of 14 MUST tests fail*"])


@pytest.mark.parametrize("options", [(), ("--bpe-isolate",)])
@pytest.mark.parametrize("adapter", ["Stub", "BatchOfStub"])
def test_a_stub_fails_its_tests_and_says_how_to_have_them_skipped(
    project: Project, adapter: str, options: tuple[str, ...]
) -> None:
    project.write("methods.py", METHODS)
    result = project.judge(f"methods:{adapter}", *options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "encode returned None; expected list[int]; raise NotImplementedError to have its tests skipped" in " ".join(
        result.stdout.str().split()
    )
    result.stdout.fnmatch_lines(["verdict       PASS: trainer (1 MUST test), decoder (1)"])
    assert "encode returned None; expected list[int]" in project.refused("methods:OnlyStub")


@pytest.mark.parametrize("options", [(), ("--bpe-isolate",)])
@pytest.mark.parametrize(
    ("adapter", "message", "passes"),
    [
        ("methods:NoTrain", "train returned None; return a Tokenizer with .vocab and .merges", "encoder (14"),
        ("methods:NoFiles", "from_files returned None; return a tokenizer", "trainer (1"),
        ("methods:NoJson", "from_tokenizer_json returned None; return a tokenizer", "trainer (1"),
        ("methods:none", "the constructor returned None; return a tokenizer", ""),
        ("cs336:course", "run_train_bpe returned None; return (vocab, merges)", "encoder (14"),
    ],
)
def test_what_makes_tokenizers_may_be_a_stub(
    project: Project, adapter: str, message: str, passes: str, options: tuple[str, ...]
) -> None:
    project.write("methods.py", METHODS)
    project.write("course.py", "from methods import Right as get_tokenizer\ndef run_train_bpe(*_): pass\n")
    result = project.judge(adapter, *options)
    text = " ".join(result.stdout.str().split())
    assert f"{message}" in text
    assert "; raise NotImplementedError to have its tests skipped" in text
    assert f"verdict PASS: {passes}" in text if passes else "verdict encoder FAIL" in text


def test_training_that_returns_three_values_fails(project: Project) -> None:
    project.write("methods.py", METHODS)
    assert "train returned tuple, which has no attribute vocab" in project.refused("methods:Triple", "-k", "train")


def test_a_class_that_fails_only_because_of_another_does_not_pass(project: Project) -> None:
    project.write("methods.py", METHODS)
    result = project.judge("methods:Chunks")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["verdict       PASS: trainer (1 MUST test), decoder (1)"])


def test_what_was_announced_and_not_tested_is_named(project: Project) -> None:
    project.write(
        "fixed.py", "from mine import Right\nclass Fixed(Right):\n    model = 'gpt2'\n    def __init__(self): ...\n"
    )
    result = project.judge("fixed:Fixed")
    printed = " ".join(result.stdout.str().split())
    assert "announced and not tested: decode, encode" in printed
    assert "announced and not tested" not in project.judge("mine:Right").stdout.str()
