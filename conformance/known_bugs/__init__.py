"""Known bugs: a library of incorrect tokenizers, each a few lines over the textbook.

They measure the suite, which must catch each of them, and they diagnose failures: an implementation that gives the same
wrong answers as a known bug probably has that bug. A bug is here because it was seen in a repository, a package, an
issue or a course, because it is one step from such a bug, or because people make that mistake by accident.

Each module is one section. Every class in it with a `clause` is a known bug.
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
    "allowed_special",
    "decoding",
    "streaming",
    "files",
    "batch",
    "state",
    "long_inputs",
)


@dataclass(frozen=True)
class KnownBug:
    """One incorrect tokenizer.

    Attributes:
        id: the name of its class in kebab-case; permanent.
        section: the name of its module.
        clause: the clause that it violates first.
        sentence: what it does, and why people write it.
        fix: what to change, in at most two lines.
        evidence: where it, or a bug one step away, was seen: repository, package, issue or course; "" if nowhere yet.
        varies: whether its answers depend on the process: the hash seed, the locale, the current directory, the time.
        target: the class, for the adapter protocol.
    """

    id: str
    section: str
    clause: str
    sentence: str
    fix: str
    evidence: str
    varies: bool
    target: type

    @property
    def long(self) -> bool:
        """Whether only long inputs show it, for which there are properties and no golden cases."""
        return self.section == "long_inputs"


@lru_cache(maxsize=1)
def known_bugs() -> tuple[KnownBug, ...]:
    """Return every known bug, by section, in the order of the modules."""
    return tuple(bug for section in SECTIONS for bug in _in_section(section))


def _in_section(section: str) -> Iterator[KnownBug]:
    module = importlib.import_module(f"{__name__}.{section}")
    for name, target in vars(module).items():
        if isinstance(target, type) and target.__module__ == module.__name__:
            texts = vars(target)
            if not isinstance(texts.get("clause"), str):
                continue
            yield KnownBug(
                re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower(),
                section,
                texts["clause"],
                target.__doc__ or "",
                texts["fix"],
                texts.get("evidence", ""),
                bool(texts.get("varies")),
                target,
            )
