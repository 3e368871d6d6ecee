"""Whether what fails may follow another lawful convention, which the implementation has only to declare."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from bpe_conformance.fixtures.spec import Case

from ..cases.expectations import expected_ids
from ..terminal import show

Result = Mapping[str, Any]

CLAUSES = {"TRAIN-TIE-": "ties", "TRAIN-IDS-": "ids"}
"""Beginning of a clause that right trainers differ in → what differs."""


def differing(results: Iterable[Result], cases: Iterable[Case], explained: Collection[str] = ()) -> list[str]:
    """Return what of an implementation may follow another convention than the default: ties, ids, the lookup.

    Args:
        results: those of a run.
        cases: the golden cases.
        explained: failures that look like a known bug, which tells of the lookup itself if that is it.
    """
    failed = [one for one in results if one["state"] == "fail"]
    found = [what for start, what in CLAUSES.items() if any(one["clause"].startswith(start) for one in failed)]
    golden = {case.id: case for case in cases if "bytes" in case.expect.get("by_convention", ())}
    golden = {name: case for name, case in golden.items() if name not in explained}
    by_bytes = [_follows_bytes(golden[one["id"]], one) for one in failed if one["id"] in golden]
    return [*found, "the lookup"] if sum(by_bytes) > len(by_bytes) / 2 else found


def _follows_bytes(case: Case, result: Result) -> bool:
    """Whether the answer is the one that is right where the lookup is by bytes."""
    values = case.expect["by_convention"]
    if case.model is None or not all("ids" in values[key] for key in ("pair", "bytes")):
        return False
    ids = expected_ids(values["bytes"])
    around = show.first_difference(expected_ids(values["pair"]), ids)
    return bool(result["got"] == show.ascii_only(show.ids(ids, case.model.vocab, around)))
