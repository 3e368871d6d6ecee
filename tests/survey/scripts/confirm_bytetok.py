"""Show the findings in bytetok. Run it with Python 3.12 and `pip install bytetok==0.4.0`."""

from bytetok import RegexTokenizer
from shared import GPT2, check, finish


def trained(text, vocab_size):
    made = RegexTokenizer(GPT2)
    made.train(text, vocab_size, show_progress=False)
    return made


def alphabet():
    made = RegexTokenizer(GPT2)
    made.merges, made.vocab = {}, {byte: bytes([byte]) for byte in range(256)}
    return list(made.encode("a"))


check("TRAIN-EMPTY-1", lambda: len(trained("", 300).merges), 0)
check("TRAIN-SIZE-2", lambda: len(trained("ab", 256).merges), 0)
check("BYTES-ALPHABET-1", alphabet, [97])
check("TRAIN-TIE-1", lambda: list(trained("ab\nba", 257).merges), [(97, 98)])  # the first seen
finish()
