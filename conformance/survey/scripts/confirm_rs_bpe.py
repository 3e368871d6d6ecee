"""Show the findings in rs-bpe. Run it with `pip install rs-bpe==0.1.0`."""

import sys

from rs_bpe.bpe import openai

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


cl100k = openai.cl100k_base()
check("DECODE-UTF8-1", lambda: cl100k.decode([112]), "\ufffd")
check("DECODE-UNKNOWN-1", lambda: cl100k.decode([100300]), "an error")
check("DECODE-UNKNOWN-1", lambda: cl100k.decode([1000000]), "an error")
check("SPECIAL-EXACT-1", lambda: list(cl100k.encode("<|endoftext|>")), [100257])
sys.exit(any(failed))
