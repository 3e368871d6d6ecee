"""`bpe-conformance conventions`: probes which conventions an implementation follows."""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

from bpe_conformance.fixtures import PATTERNS, Merge, read_model
from bpe_conformance.fixtures.conventions import CONVENTIONS
from bpe_conformance.fixtures.one_line import ascii_only
from bpe_conformance.reference import textbook

from ..answer import first_difference
from ..command_line import print_lines
from ..implementation.implementation import Implementation, Trained, load
from ..implementation.proxy import CallFailed, TimedOut
from ..operations import TRAINING_KEYS, conventions_of, expression
from ..terminal import show

SPECIAL = ("<|b|>", "<|a|>")
OTHER_SPLIT = "it does not split by GPT-2's pattern; the suite says by which: declare it as `pattern`, and probe again"
ONLY_RECOMMENDED = " (the suite accepts any order: TRAIN-IDS-2 is a SHOULD)"
BYTES = [bytes([byte]) for byte in range(256)]
_HAND_MADE = (
    *(("ab\nba", 1), ("ba\nab", 1), ("ĭ\nĮ", 1), ("Į\nĭ", 1), ("daad", 3), ("aab\nbbc\ncca", 3)),
    *(("abcd\ncdab\nbcda", 4), ("zab\nzab\nbz\nbz\ncab", 3)),
)
_WITHOUT_TIES = (  # texts without ties: a merge changes the pairs next to it, so a trainer that keeps old counts fails
    *(("aaa\naaa\naaa\nzy\nzy", 2), ("zyzyzy\nzyzyzy\nab\nab\nab", 3), ("aaaaa\naaaaa\nzy\nzy\nzy", 2)),
    *(("abc\nabc\nabc\nab\nab\nbc\nzy\nzy", 3), ("zab\nzab\nzab\nabc\nabc\nxy", 3)),
)
_GENERATED = 24
_SPECIAL_TEXTS = (
    ("abc\nabc\nabc\nab\nzy\nzy", "abc"),
    ("<|e|>\n<|e|>\n<|e|>\n|>\nzy\nzy", "<|e|>"),
    ("xcdex\nxcdex\nxcdex\ncd\nzy\nzy", "cde"),
)
"""Texts with a special token. A pair in it is the most frequent in the whole text, and rare outside of it."""
_LOOKUP_MODEL = {"merges": [["b", "c"], ["a", "b"], ["ab", "c"], ["e", "f"], ["d", "e"]]}
_LOOKUP_TEXTS = ("abc", "xabc", "def")  # the last has the same ids under both, unlike an encoder that ignores ranks


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("adapter", metavar="ADAPTER", help="as for --adapter of the suite: mypkg.mymodule:Tokenizer")


def run(options: argparse.Namespace) -> int:
    report = find(options.adapter)
    print_lines(report.lines)
    return report.status


@dataclass(frozen=True)
class Probe:
    text: str
    merges: int
    split: str = PATTERNS["gpt2"]

    def expected(self, key: str) -> list[Merge]:
        return textbook.learn(self.text, 256 + self.merges, (), self.split, **conventions_of(key))

    def line(self, merges: Sequence[Merge], until: int) -> str:
        return f"{show.text_line(self.text)} gives {show.merges(list(merges)[: until + 1])}"


@dataclass(frozen=True)
class ProbeResult:
    name: str
    value: str | None  # the value found, or None if it is undetermined or no known value fits
    why: str  # the probe that showed it, or why it is undetermined
    broken: bool = False  # whether no value that can be declared fits
    failed: bool = False  # whether it is undetermined because a call gave no answer, or the split is another

    @property
    def line(self) -> str:
        return f"{self.name:13} {self.value or ('no known value' if self.broken else 'undetermined'):22} {self.why}"


@dataclass(frozen=True)
class Report:
    name: str
    declared: Mapping[str, str]
    findings: Sequence[ProbeResult]

    @property
    def found(self) -> dict[str, str]:
        return {finding.name: finding.value for finding in self.findings if finding.value is not None}

    @property
    def to_declare(self) -> dict[str, str]:
        """The values other than the defaults; an undetermined convention keeps its declared value."""
        kept = {finding.name: self.declared.get(finding.name) for finding in self.findings}
        values = {name: self.found.get(name, kept[name]) for name in CONVENTIONS if name in kept}
        return {name: value for name, value in values.items() if value and value != CONVENTIONS[name][0]}

    @property
    def contradictions(self) -> Iterator[str]:
        """One line for each convention whose declared value is incorrect, or that no known value fits."""
        for finding in self.findings:
            says = self.declared.get(finding.name, CONVENTIONS[finding.name][0])
            stated = f"{says} is declared" if finding.name in self.declared else f"the default is {says}"
            if finding.broken:
                yield f"{finding.name}: {stated}, but the tokenizer follows no known value"
            elif finding.value not in (None, says) and (finding.name, says) != ("tie_break", "unspecified"):
                yield f"{finding.name}: {stated}, but the tokenizer follows {finding.value}"

    @property
    def lines(self) -> Iterator[str]:
        yield f"{self.name}: conventions found by probing"
        yield from (f"  {finding.line}" for finding in self.findings)
        to_declare = self.to_declare
        literal = ", ".join(f'"{name}": "{value}"' for name, value in to_declare.items())
        contradictions, failed = list(self.contradictions), [one.name for one in self.findings if one.failed]
        if any(finding.broken for finding in self.findings):
            yield "no declaration describes this tokenizer; run the suite, which names likely bugs"
        elif not self.found and not failed:
            yield "the tokenizer supports too little to determine a convention"
        elif to_declare:
            yield f"declare: conventions = {{{literal}}}"
            if to_declare.get("tie_break") == "unspecified" != self.declared.get("tie_break"):
                yield "unspecified accepts any tied pair; if you meant to follow another rule, the trainer has a bug"
        elif not failed:
            some = "" if len(self.found) == len(self.findings) else ", as far as they could be determined"
            yield f"nothing to declare: the tokenizer follows the defaults{some}"
        if failed:
            yield f"not determined: {', '.join(failed)}; run the suite, which shows why"
        if contradictions:
            yield from (f"CONTRADICTION {line}" for line in contradictions)
            if to_declare and not any(finding.broken for finding in self.findings):
                yield "declare it only if you intend it; otherwise it is a bug, which the suite names"
        elif self.found and not failed:
            yield "nothing contradicts the declaration"
            if self.declared.get("tie_break") == "unspecified" != self.found.get("tie_break", "unspecified"):
                yield f"for an exact test, declare tie_break {self.found['tie_break']} instead of unspecified"

    @property
    def status(self) -> int:
        return int(any(finding.failed for finding in self.findings) or any(self.contradictions))


def find(name: str) -> Report:
    with contextlib.redirect_stdout(sys.stderr):
        return probe(load(name))


def probe(implementation: Implementation) -> Report:
    findings = [_lookup(implementation)]
    if "train" in implementation.capabilities:
        tie_break, byte_order_of_ties = _tie_break(implementation, implementation.conventions["pattern"])
        may_split_otherwise = tie_break.broken and implementation.conventions["pattern"] == "gpt2"
        if may_split_otherwise and not all(_tie_break(implementation, name)[0].broken for name in PATTERNS):
            tie_break = ProbeResult("tie_break", None, OTHER_SPLIT, failed=True)
        train_special = _train_special(implementation)
        if train_special.broken and tie_break.broken:
            train_special = ProbeResult("train_special", None, "training is incorrect even without special tokens")
        findings += [tie_break, *_numbering(implementation, byte_order_of_ties), train_special]
    else:
        of_training = [name for name in CONVENTIONS if name != "lookup"]
        findings += [ProbeResult(name, None, "the tokenizer does not support train") for name in of_training]
    findings.sort(key=lambda finding: list(CONVENTIONS).index(finding.name))
    return Report(implementation.name, implementation.declared, findings)


@cache
def probes() -> tuple[Probe, ...]:
    """Return the trainings, the most readable first. Each reaches its number of merges under every known rule."""
    found = [Probe(text, merges) for text, merges in _HAND_MADE]
    source = random.Random(20)
    while len(found) < len(_HAND_MADE) + _GENERATED:
        text = "".join("abcd é\n"[int(7 * source.random())] for _ in range(10 + len(found)))
        one = Probe(text, 3 + len(found) % 4)
        if all(len(one.expected(key)) == one.merges for key in TRAINING_KEYS):
            found.append(one)
    return (*found, *(Probe(text, merges) for text, merges in _WITHOUT_TIES))


def _tie_break(implementation: Implementation, pattern: str) -> tuple[ProbeResult, str | None]:
    trained: dict[Probe, list[Merge]] = {}
    fault = ""
    split = expression("gpt2", {"pattern": pattern})
    for one in (replace(probe, split=split) for probe in probes()):
        answer = _ask(lambda one=one: implementation.train(one.text, 256 + one.merges, []))  # type: ignore[misc]
        if isinstance(answer, Trained):
            trained[one] = answer.merges
        else:
            fault = fault or f"training {show.text_line(one.text)} to {256 + one.merges}: {answer}"
    if not trained:
        return ProbeResult("tie_break", None, fault, failed=True), None
    failed = {key: _first_failure(key, trained) for key in TRAINING_KEYS}
    fitting = [key for key, evidence in failed.items() if not evidence]
    note = f"; {fault}" if fault else ""
    if len(fitting) == 1:
        found = conventions_of(fitting[0])
        shown = "; ".join(_evidence(fitting[0], trained))
        is_by_ids = found["tie_break"] == "smaller-ids"
        return ProbeResult("tie_break", found["tie_break"], shown + note), found["byte_order"] if is_by_ids else None
    if fitting:
        return ProbeResult("tie_break", None, f"the probes do not distinguish {' from '.join(fitting)}{note}"), None
    for one in sorted(trained, key=lambda one: (len(one.text), one.text)):
        if wrong := not_a_maximum(one, trained[one]):
            return ProbeResult("tie_break", None, wrong, broken=True), None
    shown = "; ".join(dict.fromkeys(f"{failed[key]}, which excludes {key}" for key in TRAINING_KEYS))
    return ProbeResult("tie_break", "unspecified", f"each merge has the highest count; {shown}{note}"), None


def _first_failure(key: str, trained: Mapping[Probe, Sequence[Merge]]) -> str:
    wrong = ((one, merges) for one, merges in trained.items() if merges != one.expected(key))
    return next((one.line(merges, first_difference(one.expected(key), merges)) for one, merges in wrong), "")


def _evidence(rule: str, trained: Mapping[Probe, Sequence[Merge]]) -> Iterator[str]:
    """Yield the probes that exclude the other rules, each with the rules that it excludes first."""
    left = [key for key in TRAINING_KEYS if key != rule]
    for probe, merges in trained.items():
        if excluded := {key: probe.expected(key) for key in left if probe.expected(key) != merges}:
            left = [key for key in left if key not in excluded]
            until = max(first_difference(expected, merges) for expected in excluded.values())
            yield f"{probe.line(merges, until)}, which excludes {', '.join(excluded)}"


def not_a_maximum(probe: Probe, merges: Sequence[Merge]) -> str:
    words = textbook.corpus(probe.text, (), probe.split)
    for step, pair in enumerate(merges):
        counts = textbook.count_pairs(words)
        most = max(counts.values(), default=0)
        if step >= probe.merges or counts[pair] < most:
            best = show.merges([other for other, count in counts.items() if count == most])
            given = f"{show.text_line(probe.text)}: merge {step + 1} is {show.pair(pair)} with count {counts[pair]}"
            return f"{given}; the highest is {most}: {best}" if step < probe.merges else f"{given}; one too many"
        words = [textbook.replace(word, pair) for word in words]
    if len(merges) < probe.merges:
        return f"{show.text_line(probe.text)}: {len(merges)} of {probe.merges} merges, although pairs remain"
    return ""


def _numbering(implementation: Implementation, byte_order_of_ties: str | None) -> Iterator[ProbeResult]:
    special: list[str] = list(SPECIAL)
    answer = _ask(lambda: implementation.train("abab\ncd", 260, special))
    fault = ""
    if not isinstance(answer, Trained):
        fault, special = f"training with special tokens: {answer}", []
        answer = _ask(lambda: implementation.train("abab\ncd", 258, []))
    if not isinstance(answer, Trained):
        yield ProbeResult("byte_order", byte_order_of_ties, "from the ties; " * bool(byte_order_of_ties) + str(answer))
        yield ProbeResult("id_layout", None, str(answer))
        return
    known = product(CONVENTIONS["byte_order"], CONVENTIONS["id_layout"])
    fitting = [pair for pair in known if textbook.build_vocab(answer.merges, special, *pair) == answer.vocab]
    orders, layouts = (list(dict.fromkeys(kind)) for kind in zip(*fitting, strict=True)) if fitting else ([], [])
    yield _byte_order(answer, orders, byte_order_of_ties)
    yield _layout(answer, special, layouts, fault)


def _byte_order(trained: Trained, orders: Sequence[str], of_ties: str | None) -> ProbeResult:
    ids = [index for index, token in sorted(trained.vocab.items()) if len(token) == 1]
    as_found = [trained.vocab[index] for index in ids]
    known = [order for order in CONVENTIONS["byte_order"] if list(textbook.byte_ids(order)) == as_found]
    found = (list(orders) or known)[:1]
    index = {token: index for index, token in trained.vocab.items()}
    shown = ", ".join(f"{show.token(byte)} has id {index.get(byte, 'none')}" for byte in (b" ", b"!"))
    if of_ties and found != [of_ties]:
        order = found[0] if found else "neither"
        return ProbeResult("byte_order", of_ties, f"from the ties; the ids are in {order} order: {shown}")
    if found:
        return ProbeResult("byte_order", found[0], shown)
    is_whole = set(as_found) == set(BYTES)
    why = f"the ids are in neither order{ONLY_RECOMMENDED if is_whole else ''}: {shown}"
    return ProbeResult("byte_order", None, why, broken=not is_whole)


def _layout(trained: Trained, special: Sequence[str], layouts: Sequence[str], fault: str) -> ProbeResult:
    if not layouts:
        groups = {
            "bytes": BYTES,
            "specials": [token.encode() for token in special],
            "merges": [left + right for left, right in trained.merges],
        }
        ids = {token: index for index, token in trained.vocab.items()}
        ranges, is_whole = [], len(ids) == len(trained.vocab)
        for name, tokens in groups.items():
            at = sorted(ids[token] for token in tokens if token in ids)
            is_whole &= len(at) == len(tokens)
            lost = f", {len(tokens) - len(at)} without an id" if len(at) < len(tokens) else ""
            ranges += [f"{name} {at[0]} to {at[-1]}{lost}" if at else f"{name} none"] if tokens else []
        why = f"the ids are {'; '.join(ranges)}{ONLY_RECOMMENDED if is_whole else ''}"
        return ProbeResult("id_layout", None, why, broken=not is_whole)
    if len(layouts) > 1:
        return ProbeResult("id_layout", None, fault or f"the probe does not distinguish {' from '.join(layouts)}")
    samples = (b"\0", SPECIAL[0].encode(), b"".join(trained.merges[0] if trained.merges else ()))
    found = ((index, token) for index, token in sorted(trained.vocab.items()) if token in samples)
    shown = ", ".join(f"{show.token(token)} has id {index}" for index, token in found)
    return ProbeResult("id_layout", layouts[0], shown)


def _lookup(implementation: Implementation) -> ProbeResult:
    if "encode" not in implementation.capabilities:
        return ProbeResult("lookup", None, "the tokenizer does not support encode")
    if implementation.fixed_model is not None:
        why = f"the only model is {implementation.fixed_model}, with which all values give the same ids"
        return ProbeResult("lookup", None, why)
    model = read_model(_LOOKUP_MODEL)
    split = expression("gpt2", implementation.conventions)
    made = {kind: textbook.with_conventions(lookup=kind) for kind in CONVENTIONS["lookup"]}
    kinds = {kind: make(model.vocab, model.merges, None, split) for kind, make in made.items()}
    rows: list[list[int]] = []
    for text in _LOOKUP_TEXTS:
        answer = _ask(lambda text=text: implementation.build(model).encode(text))  # type: ignore[misc]
        if not isinstance(answer, list):
            fault = f"encoding {show.text_line(text)} with {show.merges(model.merges)}: {answer}"
            return ProbeResult("lookup", None, fault, failed=True)
        rows.append(answer)
    texts = zip(_LOOKUP_TEXTS, rows, strict=True)
    encoded = "; ".join(f"{show.text_line(text)} gives {show.ids(row, model.vocab)}" for text, row in texts)
    shown = f"merges {show.merges(model.merges)}: {encoded}"
    fitting = [kind for kind, one in kinds.items() if rows == [one.encode(text) for text in _LOOKUP_TEXTS]]
    if len(fitting) > 1:
        return ProbeResult("lookup", None, f"the probe cannot tell {' and '.join(fitting)} apart")
    return ProbeResult("lookup", fitting[0] if fitting else None, shown, broken=not fitting)


def _train_special(implementation: Implementation) -> ProbeResult:
    shown: list[str] = []
    found: set[str] = set()
    all_fit = True
    values = CONVENTIONS["train_special"]
    split = expression("gpt2", implementation.conventions)
    for text, special in _SPECIAL_TEXTS:
        answer = _ask(lambda one=(text, special): implementation.train(one[0], 258, [one[1]]))  # type: ignore[misc]
        if not isinstance(answer, Trained):
            return ProbeResult("train_special", None, f"training with special tokens: {answer}")
        shown.append(f"{show.text_line(text)} with {show.text_line(special)} gives {show.merges(answer.merges)}")
        learned = {value: textbook.learn(text, 258, [special], split, train_special=value) for value in values}
        fitting = {value for value in values if learned[value] == answer.merges}
        all_fit &= bool(fitting)
        found |= fitting if len(fitting) == 1 else set()
    if all_fit and not found:
        return ProbeResult("train_special", None, f"the probe cannot tell {' and '.join(values)} apart")
    one = found.pop() if len(found) == 1 else None
    return ProbeResult("train_special", one, "; ".join(shown if one is None else shown[:1]), broken=one is None)


def _ask(question: Callable[[], object]) -> object:
    try:
        return question()
    except (CallFailed, TimedOut) as fault:
        return ascii_only(" ".join(str(fault).split()))
