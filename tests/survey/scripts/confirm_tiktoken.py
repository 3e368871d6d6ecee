"""Show the findings in tiktoken. Run it with `pip install tiktoken==0.14.0`."""

import tiktoken
from shared import GPT2, check, finish
from tiktoken._educational import bpe_train


def encoding(special=(), without=(), learned=(), pattern=GPT2):
    ranks = {bytes([byte]): byte for byte in range(256) if byte not in without}
    ranks |= {token: 256 + number for number, token in enumerate(learned)}
    numbered = {token: len(ranks) + number for number, token in enumerate(special)}
    return tiktoken.Encoding("test", pat_str=pattern, mergeable_ranks=ranks, special_tokens=numbered)


def longest():
    # The order of the alternatives is that of a hash map, which differs between processes and maps.
    tokens = [f"<|{'a' * length}" for length in range(1, 9)]
    enc = encoding(tokens)
    return enc.encode(tokens[-1], allowed_special="all")


check("SPECIAL-SCAN-1", longest, [263])
check("ERROR-TABLE-1", lambda: encoding(without=b"z").encode("az"), "an error")
check("TRAIN-END-1", lambda: len(bpe_train("", 257, GPT2, visualise=None)), 256)
check("PIPELINE-NORM-1", lambda: encoding(learned=["\xe9".encode()]).encode("e\u0301"), [256])
check("PIPELINE-SPLIT-1", lambda: encoding(pattern=[r"\p{N}{1,3}", GPT2]).encode("1234"), [49, 50, 51, 52])
finish()
