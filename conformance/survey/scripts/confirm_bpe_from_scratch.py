"""Show the findings in bpe-from-scratch. Run it with Python 3.12 and `pip install bpe-from-scratch==0.3.0`."""

import sys

from bpe_from_scratch import ByteLevelBPE

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


def trained(text, vocab_size):
    made = ByteLevelBPE()
    made.train(text, vocab_size)
    return made


check("TRAIN-EMPTY-1", lambda: len(trained("", 300).merges), 0)
check("TRAIN-SIZE-2", lambda: len(trained("ab", 256).merges), 0)
check("SPECIAL-EXACT-1", lambda: len(trained("abab", 257).encode("<|endoftext|>")), 1)
sys.exit(any(failed))
