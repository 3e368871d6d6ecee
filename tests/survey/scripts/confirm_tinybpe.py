"""Show the findings in tinybpe. Run it with `pip install tinybpe==1.0.0`."""

from shared import GPT2, check, finish
from tinybpe import Tokenizer


def load(merges=((97, 98),), special=None):
    return Tokenizer(list(merges), pat_str=GPT2, special_tokens=special)


check("BYTES-ALPHABET-1", lambda: load([]).encode("a"), [97])
check("DECODE-UNKNOWN-1", lambda: load().decode([97, 999]), "an error")
check("SPECIAL-EMPTY-1", lambda: load(special={"": 257}).encode("ac"), [97, 99])
check("DECODE-UTF8-1", lambda: load().decode([0xE2]), "\ufffd")
check("MERGE-GPT2-1", lambda: len(Tokenizer.from_pretrained("r50k_base").encode("123")), 1)
check("SPLIT-CL100K-3", lambda: Tokenizer.from_pretrained("cl100k_base").encode("23"), [1419])
finish()
