"""Show the findings in bpe-from-scratch. Run it with Python 3.12 and `pip install bpe-from-scratch==0.3.0`."""

from bpe_from_scratch import ByteLevelBPE
from shared import check, finish


def trained(text, vocab_size):
    made = ByteLevelBPE()
    made.train(text, vocab_size)
    return made


check("TRAIN-EMPTY-1", lambda: len(trained("", 300).merges), 0)
check("TRAIN-SIZE-2", lambda: len(trained("ab", 256).merges), 0)
check("SPECIAL-EXACT-1", lambda: len(trained("abab", 257).encode("<|endoftext|>")), 1)
finish()
