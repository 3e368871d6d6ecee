"""How well the diagnosis names several faults at once: random known bugs composed in one class, and judged.

Run by hand, some minutes: `python tests/benchmarks/diagnosis.py [SEED]`. It prints, for each number of faults, how many
of them are named, and how many causes are told that are none of them.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

from bpe_conformance.cases.difference import TIMED_OUT, Difference
from bpe_conformance.cases.judging import judge, skip_reason
from bpe_conformance.fixtures.spec import Spec, load_spec
from bpe_conformance.implementation.calls import TimedOut
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs import KnownBug, known_bugs, matrix
from bpe_conformance.known_bugs.correct import Encoder, Trainer
from bpe_conformance.known_bugs.likely_bugs import ranked

HOW_MANY = {2: 60, 3: 30, 5: 20}
"""Faults in one class → how many classes."""
NO_STEPS = ("clause", "fix", "varies")


def drawn(source: random.Random, faults: int) -> tuple[str, ...]:
    """Return known bugs of different sections that can stand in one class: no two get the same step wrong."""
    fixed = sorted(bug.id for bug in known_bugs() if not bug.varies)
    while True:
        names = tuple(source.sample(fixed, faults))
        sections = {_bug(name).section for name in names}
        steps = [step for name in names for step in _steps(_bug(name).target)]
        if len(sections) == faults and len(steps) == len(set(steps)) and _stand_together(names):
            return names


def composed(names: Sequence[str]) -> type:
    """Return a class with all the faults."""
    targets = [_bug(name).target for name in names]
    trainers = tuple(target for target in targets if issubclass(target, Trainer))
    encoders = tuple(target for target in targets if issubclass(target, Encoder))
    trainer = type("Wrong", trainers or (Trainer,), {})
    if not encoders:
        return trainer
    body: dict[str, object] = {}
    if trainers:

        def train(_: type, text: str, vocab_size: int, special_tokens: list[str], pattern: str | None = None) -> object:
            return trainer.train(text, vocab_size, special_tokens, pattern)  # type: ignore[attr-defined]

        body["train"] = classmethod(train)
    return type("Wrong", encoders, body)


def diagnosed(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Judge the class with these faults by every golden case, and return the causes that are told."""
    implementation = Implementation("wrong", composed(names))
    answers: dict[str, str] = {}
    asked = [case for case in _spec().cases if not skip_reason(case, implementation)]
    for case in asked:
        try:
            with implementation.time_limit():
                difference = judge(case, implementation)
        except TimedOut:
            difference = Difference("", "", "", answer=TIMED_OUT)
        if difference is not None:
            answers[case.id] = difference.fingerprint
    likely = ranked(answers, [case.id for case in asked], matrix.read(), _clauses())
    return [one.bugs for one in likely]


def main(seed: int) -> None:
    """Print the numbers."""
    source = random.Random(seed)
    jobs = [drawn(source, faults) for faults, times in HOW_MANY.items() for _ in range(times)]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        told = dict(zip(jobs, pool.map(diagnosed, jobs), strict=True))
    for faults in HOW_MANY:
        here = {names: causes for names, causes in told.items() if len(names) == faults}
        named = sum(any(name in bugs for bugs in causes) for names, causes in here.items() for name in names)
        wrong = sum(not set(bugs) & set(names) for names, causes in here.items() for bugs in causes)
        causes = sum(map(len, here.values()))
        print(
            f"{faults} faults: {named} of {faults * len(here)} named; of {causes} causes told {wrong} are none of them"
        )


def _bug(name: str) -> KnownBug:
    return next(bug for bug in known_bugs() if bug.id == name)


def _steps(target: type) -> set[str]:
    own = [base for base in target.__mro__ if base not in (Encoder, Trainer, object)]
    names = {name for base in own for name in vars(base) if name == "__init__" or not name.startswith("__")}
    return {f"{issubclass(target, Trainer)} {name}" for name in names - set(NO_STEPS)}


def _stand_together(names: Sequence[str]) -> bool:
    try:
        composed(names)
    except TypeError:
        return False
    return True


@cache
def _spec() -> Spec:
    return load_spec(check_schema=False)


def _clauses() -> Mapping[str, str]:
    bugs = {bug.id: bug.clause for bug in known_bugs()}
    return {**bugs, **{case.id: case.clause.id for case in _spec().cases}}


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 1)
