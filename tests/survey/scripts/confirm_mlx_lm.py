"""Show the findings in mlx-lm's detokenizers. Run it with `pip install mlx-lm==0.32.2`, on Linux with mlx[cpu], too."""

import time

from mlx_lm import tokenizer_utils
from shared import check, finish, loaded, tokenizer_json

LOAD = tokenizer_utils.PreTrainedTokenizerFast


def detokenizer(kind="BPE"):
    tokenizer = loaded(lambda path: LOAD(tokenizer_file=path), tokenizer_json())
    return getattr(tokenizer_utils, f"{kind}StreamingDetokenizer")(tokenizer)


def deltas(ids, made=None):
    """Return the text after each id, and the text at the end."""
    made, found = made or detokenizer(), []
    for index in ids:
        made.add_token(index)
        found.append(made.last_segment)
    made.finalize()
    return [*found, made.last_segment]


def seconds(ids):
    made, started = detokenizer("Naive"), time.process_time()
    deltas(ids, made)
    return time.process_time() - started


def grows(part):
    return seconds(part * (4000 // len(part))) > 23 * seconds(part * (500 // len(part)))


check("DETOK-TEXT-1", lambda: "".join(deltas(b" a\0")), " a\0")
check("DETOK-PROMPT-1", lambda: deltas(b"a b"), ["a", " ", "b", ""])
check("DETOK-HELD-1", lambda: len("".join(deltas(b"a" + b"\x80" * 9)[:-1])) >= 7, True)
check("DETOK-UNKNOWN-1", lambda: deltas([97, 999]), "an error")
check("DETOK-COST-1", lambda: grows("low löwer ".encode()), False)
check("DETOK-COST-2", lambda: grows(b"\x80"), False)
finish()
