"""Known bugs: a library of wrong tokenizers, each a few lines over the textbook.

They measure the suite (every one is caught) and help its users: what each answers to each case is what "looks like"
is matched against. A module holds one section; each class in it that says which `clause` it breaks is a known bug.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

SECTIONS = (
    "training_ties",
    "training_counts",
    "training_text",
    "splitting",
    "encoding",
    "special",
    "untrusted",
    "decoding",
    "streaming",
    "files",
    "batch",
    "faults",
    "long_inputs",
)


@dataclass(frozen=True)
class KnownBug:
    """One wrong tokenizer.

    Attributes:
        id: the name of its class in kebab-case; permanent.
        section: the module that it stands in.
        clause: the clause that it breaks first of all.
        sentence: what it does, and why people write it.
        fix: how to fix it, in at most two lines.
        varies: whether its answers depend on the process: the hash seed, the locale, the folder, the time.
        target: the class, for the adapter protocol.
    """

    id: str
    section: str
    clause: str
    sentence: str
    fix: str
    varies: bool
    target: type

    @property
    def long(self) -> bool:
        """Whether only long inputs show it, for which there are laws and no golden cases."""
        return self.section == "long_inputs"


@lru_cache(maxsize=1)
def known_bugs() -> tuple[KnownBug, ...]:
    """Return every known bug, by section, in the order in which they stand in the modules."""
    return tuple(bug for section in SECTIONS for bug in _in_section(section))


def _in_section(section: str) -> Iterator[KnownBug]:
    module = importlib.import_module(f"{__name__}.{section}")
    for name, target in vars(module).items():
        if isinstance(target, type) and target.__module__ == module.__name__ and "clause" in vars(target):
            yield KnownBug(
                re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower(),
                section,
                vars(target)["clause"],
                " ".join((target.__doc__ or "").split()),
                " ".join(vars(target)["fix"].split()),
                bool(vars(target).get("varies")),
                target,
            )
