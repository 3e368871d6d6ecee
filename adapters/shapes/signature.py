"""The parameters of functions."""

from __future__ import annotations

import inspect
from typing import Any


def takes(function: Any, *names: str) -> bool:
    """Return whether `function` has parameters of these names, other than `**keywords`; False if that is unknown."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return all(name in parameters for name in names)
