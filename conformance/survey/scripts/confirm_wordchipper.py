"""Show the findings in wordchipper. Run it without a network, with `pip install wordchipper==0.9.2`."""

import os
import sys
import tempfile

import wordchipper

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
    """Encode with an empty cache, so that the table must be downloaded; the second call reads what the first left."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WORDCHIPPER_CACHE_DIR"] = folder
        return list(wordchipper.Tokenizer.from_pretrained("r50k_base").encode("hello"))


check("MERGE-GPT2-1", encode, "an error")
sys.exit(any(failed))
