"""Show the findings in lexibyte. Run it with `pip install lexibyte==0.3.1`."""

from lexibyte import LexiByteTokenizer
from shared import check, finish


def encode():
    made = LexiByteTokenizer()
    made.train("abab", 257)
    made.register_special_tokens({"<|e|>": 257})
    return list(made.encode("a<|e|>ab"))


check("SPECIAL-EXACT-1", encode, [97, 257, 256])
finish()
