"""An export says of a model and of a value what the specification says of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bpe_conformance.answer import Text
from bpe_conformance.command_line import CommandError
from bpe_conformance.fixtures import read_model
from bpe_conformance.operations import Decode
from bpe_conformance.spec import installed_spec
from bpe_conformance.spec_tools.export import _model, _value, contents


@pytest.mark.parametrize(
    ("model", "well_formed", "ranks_by_bytes"),
    [
        ({"merges": [["a", "b"]]}, True, True),
        ({"merges": [["a", "b"], ["b", "c"]], "merge_ids": [257, 256]}, True, False),
        ({"remove": [65]}, False, True),
        ({"merges": [["a", "b"]], "extra": [[300, "ab"]]}, True, False),
    ],
)
def test_a_model_has_its_traits(model: Any, well_formed: bool, ranks_by_bytes: bool) -> None:
    written = _model("m", read_model(model))
    assert (written["well_formed"], written["ranks_by_bytes"]) == (well_formed, ranks_by_bytes)


def test_a_text_has_the_bytes_of_its_ids() -> None:
    cases = [case for case in installed_spec().cases if isinstance(case.operation, Decode) and case.table.vocab]
    known = [case for case in cases if {*case.operation.ids} <= case.table.vocab.keys() and not case.table.pipeline]
    texts = [(case, value) for case in known for value in case.expected.under("pair") or () if isinstance(value, Text)]
    assert any("\ufffd" in value.text for _, value in texts)
    for case, value in texts:
        data = b"".join(case.table.vocab[index] for index in case.operation.ids)
        assert _value(value, case) == {"text": value.text, "bytes": data.hex()}, case.id


def test_two_models_of_one_name_are_refused() -> None:
    spec = installed_spec()
    alike = [case for case in spec.cases if case.clause.id == "MERGE-ORDER-1" and not case.table.name]
    few = replace(spec, cases=tuple(replace(case, model=replace(case.table, name="m")) for case in alike))
    with pytest.raises(CommandError, match="two models have the name m; rename one of them"):
        contents(few)
