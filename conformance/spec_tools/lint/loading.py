"""What keeps a spec from being loaded at all."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from bpe_conformance.fixtures import gpt2
from bpe_conformance.fixtures.models import FOLDER as MODELS
from bpe_conformance.fixtures.spec import load_spec
from bpe_conformance.fixtures.yaml_file import SpecError

from .rule import Context, Finding, Rule

PIN = re.compile(r"([0-9a-f]{64})  (\S+)")


class ModelsPinned(Rule):
    """A model file is the one whose sha256 stands in models/SHA256SUMS."""

    name = "models-pinned"
    wants = "models/SHA256SUMS pins every model file, and nothing else"

    def check(self, context: Context) -> Iterator[Finding]:
        """Compare the files with their pins."""
        folder = context.folder / "models"
        pins: dict[str, str] = {}
        sums = folder / "SHA256SUMS"
        for row, text in enumerate(sums.read_text("utf-8").splitlines() if sums.exists() else [], 1):
            match = PIN.fullmatch(text)
            if match is None:
                yield Finding(sums, row, self.name, "this is no line of sha256sum; run sha256sum *.yaml here again")
                continue
            pins[match.group(2)] = match.group(1)
            if not (folder / match.group(2)).exists():
                yield Finding(sums, row, self.name, f"there is no {match.group(2)}; take the line away")
        for file in sorted(folder.glob("*.yaml")):
            yield from self._compare(file, pins.get(file.name))
        yield from self._gpt2(folder)

    def _compare(self, file: Path, pinned: str | None) -> Iterator[Finding]:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        if pinned is None:
            yield Finding(file, 1, self.name, f"it is not pinned; write '{digest}  {file.name}' into SHA256SUMS")
        elif pinned != digest:
            fix = "a changed model changes the meaning of its cases: give it a new name, or pin it anew"
            yield Finding(file, 1, self.name, f"its sha256 is {digest}, {pinned} is pinned; {fix}")

    def _gpt2(self, folder: Path) -> Iterator[Finding]:
        if folder == MODELS:
            try:
                gpt2()
            except ValueError as error:
                yield Finding(folder / "gpt2" / "vocab.bpe", 0, self.name, str(error))


class Schema(Rule):
    """The spec loads: YAML, JSON Schemas, unique ids, clauses and models that exist."""

    name = "schema"
    wants = "every file is strict YAML and passes its JSON Schema; ids are unique; what is named exists"

    def check(self, context: Context) -> Iterator[Finding]:
        """Load the spec, and pass on what stops it."""
        try:
            load_spec(context.folder)
            assert context.retired is not None
        except SpecError as error:
            match = re.fullmatch(r"(.+?):(?:(\d+):)? (.*)", str(error), re.DOTALL)
            if match is None:
                yield Finding(context.folder, 0, self.name, str(error))
            else:
                yield Finding(Path(match.group(1)), int(match.group(2) or 0), self.name, match.group(3))
