"""Known bugs that replace one step of a correct tokenizer by one expression."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any


def add_variants(module: str, base: type, **steps: Mapping[str, Callable[..., Any]]) -> None:
    """Add subclasses of `base` to a module.

    Args:
        module: the name of the module.
        base: a correct tokenizer.
        steps: name of a method → name of a subclass → the method in that subclass.
    """
    for step, bodies in steps.items():
        is_classmethod = isinstance(inspect.getattr_static(base, step), classmethod)
        for name, body in bodies.items():
            space = {step: classmethod(body) if is_classmethod else body, "__module__": module}
            setattr(sys.modules[module], name, type(name, (base,), space))
