"""SuperBPE: training that continues across word boundaries. `trainer` implements it; `textbook` is its oracle."""

from __future__ import annotations

from .trainer import MOST_WORDS, UNITS, train, words_in

__all__ = ["MOST_WORDS", "UNITS", "train", "words_in"]
