"""Show the findings in gigabpe. Run it with `pip install gigabpe==0.1.0`."""

import tempfile
from pathlib import Path

import gigabpe
from shared import SPELLED, check, finish


def train(text, vocab_size, alphabet=True):
    """Return the vocabulary and the merges; the alphabet is given as special tokens."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "corpus.txt")
        file.write_bytes(text.encode())
        given = list(SPELLED.values()) if alphabet else []
        return gigabpe.train_bpe([str(file)], vocab_size, special_tokens=given, pretokenizer="bytelevel")


check("TRAIN-TEXT-1", lambda: train("a\n\nb\na\n\nb", 257)[1], [("\u010a", "\u010a")])
check("BYTES-ALPHABET-1", lambda: len(train("ab", 300, alphabet=False)[0]), 257)
finish()
