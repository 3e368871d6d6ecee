"""Properties that call several methods blame the one that is at fault, and a call that does not end costs little."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from helpers.shorter_texts import leave_out_sizes
from helpers.wrong_tokenizers import Whole

from bpe_conformance.adapters.bridge.client import isolated
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.implementation.proxy import TimedOut
from bpe_conformance.operations import CLASSES
from bpe_conformance.outcome import Outcome
from bpe_conformance.properties import PROPERTIES as EVERY
from bpe_conformance.properties import complete, lifecycle, scale
from bpe_conformance.properties.engine import Effort, skip_reason
from bpe_conformance.reference import Tokenizer
from bpe_conformance.reference.textbook import spans

METHODS = {
    "encoder": "encode",
    "decoder": "decode",
    "streaming": "encode_iterable",
    "batch": "encode_batch",
    "trainer": "train",
    "files": "from_files",
    "detokenizer": "decode_iterable",
    "offsets": "encode_with_offsets",
}
CACHED = [one for one in complete.PROPERTIES if one.id.startswith("law-cached")]
LONG = [one for one in scale.PROPERTIES if one.id.removeprefix("law-long-") in ("texts", "streams", "decoding")]
PROPERTIES = [*CACHED, *lifecycle.PROPERTIES, *LONG]
MOST_HANGS = 3
"""One call that does not end, and those that find out whether an earlier call or another method is at fault."""


@pytest.fixture(autouse=True)
def only_short_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the properties about long texts two sizes: a method that never gives an answer gives none to these."""
    leave_out_sizes(monkeypatch, lambda sizes: sizes[:2])


class Alone(Tokenizer):
    """Its methods do not call one another."""

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return [super(Alone, self).encode(text) for text in texts]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        ids = super().encode(text)
        return ids, spans(text, [self.vocab[index] for index in ids])


def fails(*_: Any, **__: Any) -> Any:
    raise ArithmeticError("a call fails")


def never_ends(*_: Any, **__: Any) -> Any:
    """Do at once what the time limit does after ten seconds."""
    Hangs.calls += 1
    raise TimedOut(10.0, "a call")


class Hangs:
    calls: ClassVar[int] = 0


def with_fault(method: str, fault: Any, base: type = Alone) -> type:
    is_class_method = method in ("train", "from_files")
    return type("WithFault", (base,), {method: classmethod(fault) if is_class_method else fault})


def blamed(target: type) -> dict[str, str]:
    """Return property → the class that its failure counts in. Each may wait for few calls that do not end."""
    implementation = Implementation("x", target)
    found = {}
    for one in PROPERTIES:
        if skip_reason(one, implementation) is None:
            Hangs.calls = 0
            failure = one.run(implementation, Effort(shrink=False, examples_factor=0.2))
            assert Hangs.calls <= MOST_HANGS * (2 if one.search else 1), one.id
            if failure is not None:
                outcome = Outcome(one.id, "property", "", "failed", None, one.conformance_class, failure.mismatch)
                found[one.id] = outcome.class_at_fault
    return found


def test_each_class_has_a_method() -> None:
    assert {*METHODS} == {*CLASSES} - {"pipeline"}  # no property of these asks a tokenizer with a pipeline


@pytest.mark.release
@pytest.mark.parametrize("fault", [fails, never_ends])
@pytest.mark.parametrize("class_", METHODS)
def test_a_method_that_gives_no_answer_counts_in_its_own_class_only(class_: str, fault: Any) -> None:
    found = blamed(with_fault(METHODS[class_], fault))
    assert {*found.values()} == {class_}, found


@pytest.mark.slow
@pytest.mark.parametrize("fault", [fails, never_ends])
def test_streams_and_batches_that_call_encode_depend_on_it(fault: Any) -> None:
    found = blamed(with_fault("encode", fault, Whole))
    assert {*found.values()} == {"encoder"}, found


@pytest.mark.slow
def test_a_constructor_that_fails_counts_in_the_encoder_only() -> None:
    class TrainsWithout(Whole):
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            raise ValueError("no")

        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: list[str], pattern: str | None = None) -> Any:
            trained = Tokenizer.train(text, vocab_size, special_tokens, pattern)
            return trained.vocab, trained.merges

    found = blamed(TrainsWithout)
    assert {*found.values()} == {"encoder"}, found
    assert {"law-cached-ids", "law-long-decoding"} <= found.keys()


def test_a_process_that_encode_ends_counts_in_the_encoder_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(
        "import os\nfrom bpe_conformance.reference import Tokenizer\n\n\n"
        "class Ends(Tokenizer):\n    def encode(self, text, **_):\n        os._exit(3) if 'k' in text else None\n"
        "        return super().encode(text)\n",
        "utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    implementation = Implementation("x", isolated("ends:Ends"))
    found = lifecycle.Lifecycle(implementation, Effort(shrink=False, examples_factor=0.2)).run()
    assert found
    own = [one.mismatch.asked.operation for one in found.values() if one.mismatch.depends_on is None]
    assert {operation.conformance_class for operation in own} <= {"encoder"}


@pytest.mark.parametrize("property_id", ["law-arguments", "law-train-encode", "law-decode-first"])
def test_a_search_waits_only_once_for_a_method_that_does_not_end(property_id: str) -> None:
    calls = 0

    class NeverEnds(Alone):
        def encode(self, text: str, **choice: Any) -> list[int]:
            nonlocal calls
            calls += 1
            while True:
                pass

    implementation = Implementation("x", NeverEnds, limit=0.3)
    calls = 0
    (one,) = (one for one in EVERY if one.id == property_id)
    assert one.run(implementation, Effort()) is None
    assert calls == 1
    assert f"{property_id}: tested 1 example; more would take too long" in implementation.notes
