"""Sends outcomes from the workers of pytest-xdist to the main process, as text."""

from __future__ import annotations

import base64
import io
import pickle
from collections.abc import Mapping

from bpe_conformance.fixtures.models import Model

from ..outcome import Outcome


class _Pickler(pickle.Pickler):
    """Pickles the tables of named models by name, because each takes megabytes."""

    def __init__(self, file: io.BytesIO, models: Mapping[str, Model]) -> None:
        super().__init__(file)
        self._names = {id(part): name for name, model in models.items() for part in (model.vocab, model.merges)}

    def persistent_id(self, value: object) -> tuple[str, bool] | None:
        name = self._names.get(id(value)) if isinstance(value, Mapping | tuple) else None
        return None if name is None else (name, isinstance(value, Mapping))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, models: Mapping[str, Model]) -> None:
        super().__init__(file)
        self._models = models

    def persistent_load(self, part: tuple[str, bool]) -> object:
        name, is_vocab = part
        return self._models[name].vocab if is_vocab else self._models[name].merges


def pack(outcome: Outcome, models: Mapping[str, Model]) -> str:
    """Return an outcome as text for another process; `models` are those that have a name."""
    file = io.BytesIO()
    _Pickler(file, models).dump(outcome)
    return base64.b64encode(file.getvalue()).decode("ascii")


def unpack(text: str, models: Mapping[str, Model]) -> Outcome:
    """Return the outcome from the text that `pack` made."""
    outcome: Outcome = _Unpickler(io.BytesIO(base64.b64decode(text)), models).load()
    return outcome
