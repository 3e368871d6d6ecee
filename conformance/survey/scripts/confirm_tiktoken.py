"""Show the findings in tiktoken. Run it with `pip install tiktoken==0.14.0`."""

import sys

import tiktoken
from tiktoken._educational import bpe_train

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


def encoding(special=(), without=()):
    ranks = {bytes([byte]): byte for byte in range(256) if byte not in without}
    numbered = {token: 256 + number for number, token in enumerate(special)}
    return tiktoken.Encoding("test", pat_str=GPT2, mergeable_ranks=ranks, special_tokens=numbered)


def longest():
    # The order of the alternatives is that of a hash map, which differs between processes and maps.
    tokens = [f"<|{'a' * length}" for length in range(1, 9)]
    enc = encoding(tokens)
    return enc.encode(tokens[-1], allowed_special="all")


check("SPECIAL-SCAN-1", longest, [263])
check("ERROR-TABLE-1", lambda: encoding(without=b"z").encode("az"), "an error")
check("TRAIN-END-1", lambda: len(bpe_train("", 257, GPT2, visualise=None)), 256)
sys.exit(any(failed))
