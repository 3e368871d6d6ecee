"""Known bugs that replace one step of a correct tokenizer by one expression, or one of its values."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import Any


def add_variants(module: str, base: type, **steps: Mapping[str, Any]) -> None:
    """Add subclasses of `base` to a module.

    Args:
        module: the name of the module.
        base: a correct tokenizer.
        steps: name of a method or value → name of a subclass → the method or value in that subclass.
    """
    for step, bodies in steps.items():
        is_classmethod = isinstance(inspect.getattr_static(base, step), classmethod)
        for name, body in bodies.items():
            space = {step: classmethod(body) if is_classmethod else body, "__module__": module}
            setattr(sys.modules[module], name, type(name, (base,), space))
