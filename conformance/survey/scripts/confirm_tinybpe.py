"""Show the findings in tinybpe. Run it with `pip install tinybpe==1.0.0`."""

import sys

from tinybpe import Tokenizer

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
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


def load(merges=((97, 98),), special=None):
    return Tokenizer(list(merges), pat_str=GPT2, special_tokens=special)


check("BYTES-ALPHABET-1", lambda: load([]).encode("a"), [97])
check("DECODE-UNKNOWN-1", lambda: load().decode([97, 999]), "an error")
check("SPECIAL-EMPTY-1", lambda: load(special={"": 257}).encode("ac"), [97, 99])
check("DECODE-UTF8-1", lambda: load().decode([0xE2]), "\ufffd")
check("MERGE-GPT2-1", lambda: len(Tokenizer.from_pretrained("r50k_base").encode("123")), 1)
check("SPLIT-CL100K-3", lambda: Tokenizer.from_pretrained("cl100k_base").encode("23"), [1419])
sys.exit(any(failed))
