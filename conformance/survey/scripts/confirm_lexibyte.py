"""Show the findings in lexibyte. Run it with `pip install lexibyte==0.3.1`."""

import sys

from lexibyte import LexiByteTokenizer

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


def encode():
    made = LexiByteTokenizer()
    made.train("abab", 257)
    made.register_special_tokens({"<|e|>": 257})
    return list(made.encode("a<|e|>ab"))


check("SPECIAL-EXACT-1", encode, [97, 257, 256])
sys.exit(any(failed))
