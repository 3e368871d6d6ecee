"""The report as a page."""

from __future__ import annotations

from collections.abc import Sequence

from bpe_conformance.report.document import Document


def text(documents: Sequence[Document]) -> str:
    """Return the page."""
    raise NotImplementedError
