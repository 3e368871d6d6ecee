"""Leaves out sizes and rows of the properties about long texts: the longest ones take most of the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from bpe_conformance.properties import scale


def leave_out_sizes(patch: pytest.MonkeyPatch, kept: Callable[[Sequence[int]], Sequence[int]]) -> None:
    """Have each row of the properties ask only the sizes that `kept` returns."""
    first_wrong = scale._first_wrong

    def shorter(id_: str, row: scale.Row, *more: Any) -> Any:
        return first_wrong(id_, replace(row, sizes=kept(row.sizes)), *more)

    patch.setattr(scale, "_first_wrong", shorter)


def leave_out_rows(patch: pytest.MonkeyPatch, is_kept: Callable[[scale.Row], bool]) -> None:
    """Have the properties ask only some of their rows."""
    first_wrong = scale._first_wrong

    def some(id_: str, row: scale.Row, *more: Any) -> Any:
        return first_wrong(id_, row, *more) if is_kept(row) else None

    patch.setattr(scale, "_first_wrong", some)
