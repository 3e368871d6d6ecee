"""Reports to make pages of, without a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from bpe_conformance.fixtures.spec import Spec, load_spec
from bpe_conformance.report import document
from bpe_conformance.report.document import Adapter, Document, Judged

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&\u202e\u0000\ud800]]>"


@cache
def spec() -> Spec:
    return load_spec(check_schema=False)


def report(name: str = "one", states: Mapping[str, str] | None = None, cases: int = 40, **more: Any) -> Document:
    """Return the report of a run in which every case passed but those of `states`, case id → state."""
    results = []
    for case in [*spec().cases[:cases], *(one for one in spec().cases[cases:] if one.id in (states or {}))]:
        state = (states or {}).get(case.id, "pass")
        told = {"input": "'abc'  = 61        merges (a,b)", "expected": "97 'a'", "got": f"257 {case.id}"}
        untold = {"reason": "train"}
        result = {"id": case.id, "kind": "case", "title": case.title, "clause": case.clause.id, "seconds": 0.1}
        result |= {"section": case.clause.section, "level": case.level, "class": case.conformance_class}
        result |= {"state": state} | ({} if state == "pass" else untold if state == "not claimed" else told)
        results.append(result | more.get("result", {}))
    options = {"strict": False, "isolated": False, "seed": None, "pack": None, "selected": False, "exit": 0}
    judged = Judged(
        f"pytest conformance --adapter {name}",
        spec().clauses,
        results,
        likenesses=more.get("likenesses", ()),
        missing=more.get("missing", ()),
        options={**options, **more.get("run", {})},
    )
    adapter = Adapter(more.get("spec", name), name, "1.0", "Rust", None, more.get("conventions", {}), ["encode"])
    return document.build(adapter, judged)


def failing(count: int = 3) -> dict[str, str]:
    """Return the states of a run in which so many cases of MERGE fail, those of MERGE-ORDER-1 first."""
    mine = [case for case in spec().cases if case.clause.section == "MERGE"]
    mine.sort(key=lambda case: case.clause.id != "MERGE-ORDER-1")
    return {case.id: "fail" for case in mine[:count]}


def likeness(cases: Sequence[str], sentence: str = "Merges from the left.") -> dict[str, Any]:
    told = {"id": "greedy", "sentence": sentence, "fix": "Take the `lowest` rank.", "clause": "MERGE-ORDER-1"}
    return {"bugs": ["greedy"], "told": [told], "cases": list(cases)}
