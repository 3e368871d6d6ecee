"""Known bugs that replace one step of a correct tokenizer by one expression."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any


def add_variants(module: str, base: type, step: str, **bodies: Callable[..., Any]) -> None:
    """Add subclasses of `base` to a module.

    Args:
        module: the name of the module.
        base: a correct tokenizer.
        step: the method that each of them replaces.
        bodies: name of the subclass → its `step`.
    """
    is_classmethod = isinstance(inspect.getattr_static(base, step), classmethod)
    for name, body in bodies.items():
        space = {step: classmethod(body) if is_classmethod else body, "__module__": module}
        setattr(sys.modules[module], name, type(name, (base,), space))
