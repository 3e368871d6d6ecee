"""Show the findings in gigabpe. Run it with `pip install gigabpe==0.1.0`."""

import sys
import tempfile
from pathlib import Path

import gigabpe

failed = []


def check(clause, call, expected):
    """Print the answer of `call` and the expected one."""
    try:
        got = call()
    except BaseException as error:
        refused = expected == "an error" and isinstance(error, Exception)
        got = expected if refused else f"{type(error).__name__}: {error}"
    failed.append(got != expected)
    print(f"{clause}: {got!r}, expected {expected!r}")


def train(text, vocab_size, alphabet=True):
    """Return the vocabulary and the merges; the alphabet is given as special tokens."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spelled = [chr(byte) for byte in plain] + [chr(256 + number) for number in range(68)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "corpus.txt")
        file.write_bytes(text.encode())
        given = spelled if alphabet else []
        return gigabpe.train_bpe([str(file)], vocab_size, special_tokens=given, pretokenizer="bytelevel")


check("TRAIN-TEXT-1", lambda: train("a\n\nb\na\n\nb", 257)[1], [("\u010a", "\u010a")])
check("BYTES-ALPHABET-1", lambda: len(train("ab", 300, alphabet=False)[0]), 257)
sys.exit(any(failed))
