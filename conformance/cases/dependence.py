"""Whether a wrong answer has its cause in another part of the implementation, found by asking that part alone."""

from __future__ import annotations

from collections.abc import Callable

from bpe_conformance.fixtures import PATTERNS, Model
from bpe_conformance.reference import textbook

from ..implementation.containment import CallFailed
from ..implementation.implementation import Implementation
from ..terminal import show
from .expectations import oracle

Answer = list[int] | CallFailed
MOST_PIECES = 16


def on_encode(text: str, model: Model, implementation: Implementation, got: Answer) -> str:
    """Say so if `encode` of the whole text gives the wrong answer that a stream, a batch or loaded files gave."""
    if "encode" not in implementation.capabilities or not _alike(
        _asked(lambda: implementation.build(model).encode(text)), got
    ):
        return ""
    return f"encode gives the same for {show.text_line(text)}: fix that first"


def on_pieces(text: str, section: str, model: Model, implementation: Implementation, got: Answer) -> str:
    """Say so if the parts of a text are encoded wrong alone (special tokens), or all of them right (splitting)."""
    if isinstance(got, CallFailed) or section == "SPLIT":
        return ""
    try:
        right = oracle(model, implementation.conventions["lookup"])
    except ValueError:  # a table or a special token that the textbook refuses
        return ""
    segments = textbook.cut_special(text, model.special_tokens or ())
    if any(special for _, special in segments):
        plain = (segment for segment, special in segments if not special)
        wrong = next((one for one in plain if not _alone(one, model, implementation, right)), None)
        if wrong is not None:
            return f"{show.text_line(wrong)} alone is encoded wrong too: fix that first"
        return "" if section == "SPECIAL" else "each segment between special tokens alone is right (SPECIAL)"
    pieces = [] if model.is_large else textbook.split(text, PATTERNS[model.pattern])
    if 1 < len(pieces) <= MOST_PIECES and all(_alone(piece, model, implementation, right) for piece in pieces):
        return "each pre-token alone is encoded right: the text is split wrong (SPLIT)"
    return ""


def _alone(text: str, model: Model, implementation: Implementation, right: textbook.Tokenizer) -> bool:
    return _asked(lambda: implementation.build(model).encode(text)) == right.encode(text)


def _asked(ask: Callable[[], list[int]]) -> Answer:
    try:
        return ask()
    except CallFailed as fault:
        return fault


def _alike(one: Answer, other: Answer) -> bool:
    if isinstance(one, CallFailed) or isinstance(other, CallFailed):
        return type(one) is type(other) and _kind(one) == _kind(other)
    return one == other


def _kind(answer: Answer) -> type:
    return type(getattr(answer, "error", answer))
