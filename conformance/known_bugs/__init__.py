"""Known bugs: a library of incorrect tokenizers, each a few lines over the textbook.

Known bugs measure the suite, which must catch each of them. They also diagnose failures: an implementation that gives
the same incorrect answers as a known bug probably has that bug. A bug is in the library because someone saw it in a
repository, a package, an issue or a course, because it is one step from such a bug, or because people make that mistake
by accident.

`bugs.yaml` lists the bugs with the texts that users read; a run of the suite needs only this file. Each section is a
module of tokenizers: a class for each bug, or a line of `add_variants` for bugs that differ in one expression.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures.yaml_file import read_documents

FILE = Path(__file__).with_name("bugs.yaml")


@dataclass(frozen=True)
class KnownBug:
    """One incorrect tokenizer."""

    id: str  # the name of its class in kebab-case; permanent
    section: str  # the name of its module
    clause: str  # the clause that it violates first
    wording: str  # `sentence`, in which `{size}` stands for its size
    fix: str  # what to change, in at most two lines
    evidence: str = ""  # where it, or a bug one step away, was seen: repository, package, issue or course
    also: tuple[str, ...] = ()  # the conformance classes that it breaks in addition to that of its clause's cases
    settings: tuple[str, ...] = ()  # the settings of a pipeline (`Pipeline.settings`) without which it changes nothing
    varies: bool = False  # whether its answers depend on the process: the hash seed, the locale, the time
    changed_size: int = 0  # another `size` than its class has
    least_size: int = 0  # the smallest size that gives the same answers as `changed_size`

    @property
    def sentence(self) -> str:
        """What it does, and why people write it."""
        if not self.is_sized:
            return self.wording
        return self.wording.replace(
            "{size}", " to ".join(f"{size:,}" for size in sorted({self.least_size or self.size, self.size}))
        )

    @property
    def is_sized(self) -> bool:
        """Whether a tokenizer with the same bug can have another size: of blocks, or where numbers wrap."""
        return "{size}" in self.wording

    @property
    def size(self) -> int:
        """Its size; only sized bugs have one."""
        size: int = self.target.size  # type: ignore[attr-defined]
        return size

    @property
    def target(self) -> type:
        """The class, for the adapter protocol."""
        name = "".join(map(str.capitalize, self.id.split("-")))
        target: type = getattr(importlib.import_module(f"{__name__}.{self.section}"), name)
        return type(name, (target,), {"size": self.changed_size}) if self.changed_size else target

    def with_size(self, size: int) -> KnownBug:
        """Return the same bug with another size."""
        return replace(self, changed_size=size)

    @property
    def long(self) -> bool:
        """Whether only long inputs show it. Properties test long inputs; golden cases do not."""
        return self.section == "long_inputs"


@lru_cache(maxsize=1)
def known_bugs() -> tuple[KnownBug, ...]:
    """Return every known bug, by section."""
    (document,) = read_documents(FILE)
    found = []
    for section, bugs in document.value.items():
        for id_, texts in bugs.items():
            values: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in texts.items()}
            found.append(KnownBug(id_, section, wording=values.pop("sentence"), **values))
    return tuple(found)
