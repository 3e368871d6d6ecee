"""Show the findings in minibperust. Run it with `pip install minibperust==0.1.0`."""

import sys

from MiniBpeRust import FastRegexTokenizer

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


def encode(text, special):
    made = FastRegexTokenizer(GPT2)
    made.register_special_tokens({token: 256 + number for number, token in enumerate(special)})
    return list(made.encode(text, allowed_special="all"))


check("SPECIAL-SCAN-1", lambda: encode("<|e|><|e|>", ["<|e|>", "<|e|><|e|>"]), [257])
check("SPECIAL-EMPTY-1", lambda: encode("abc d", [""]), [97, 98, 99, 32, 100])
sys.exit(any(failed))
