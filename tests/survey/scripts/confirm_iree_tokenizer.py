"""Show the findings in iree-tokenizer. Run it with `pip install iree-tokenizer==0.3.0`."""

import json

from iree.tokenizer import Tokenizer
from shared import LLAMA3, O200K, check, exit_status, finish, level, pipeline_json, split, tokenizer_json


def encode(text, **options):
    return list(Tokenizer.from_str(tokenizer_json(**options)).encode(text))


def encode_ordinary(text, token):
    """Encode with an added token that is not `special`, which only decoding may notice."""
    document = json.loads(tokenizer_json(special=[token]))
    document["added_tokens"][0]["special"] = False
    return list(Tokenizer.from_str(json.dumps(document)).encode(text))


def streamed(ids):
    with Tokenizer.from_str(tokenizer_json()).decode_stream() as stream:
        return "".join([*(stream.feed([index]) for index in ids), stream.finalize()])


def with_normalized(text, token, other):
    """Encode with two added tokens, of which the second is `normalized`."""
    document = json.loads(tokenizer_json(special=[token, other]))
    document["added_tokens"][1]["normalized"] = True
    return list(Tokenizer.from_str(json.dumps(document)).encode(text))


def decode(ids, **options):
    return Tokenizer.from_str(tokenizer_json(**options)).decode(ids)


def piped(text, *steps, **options):
    return list(Tokenizer.from_str(pipeline_json(*steps, **options)).encode(text))


def crash():
    steps = [split(" ", "MergedWithNext"), split("[0-9]", "MergedWithPrevious"), level(own=False)]
    return exit_status(lambda: piped("ab 1c 22", *steps))


digits = {"type": "Digits", "individual_digits": True}
after = [level(), {"type": "Digits", "individual_digits": False}]
normalized, single_word, rstrip = {"normalized": True}, {"single_word": True}, {"rstrip": True}
lines = [("\u010a", "\u0109"), ("\u010a\u0109", "\u010a")]
check("MERGE-ORDER-1", lambda: encode("ccc", merges=[("c", "c"), ("c", "cc")]), [256, 99])
check("SPLIT-LLAMA3-1", lambda: encode("\n\t\n", merges=lines, pattern=LLAMA3), [257])
check("SPLIT-O200K-1", lambda: encode("lC", merges=[("l", "C")], pattern=O200K), [108, 67])
check("SPLIT-NONE-1", lambda: encode("a b", merges=[("a", "\u0120")], pattern=r"[\s\S]+"), [256, 98])
check("ERROR-TABLE-1", lambda: encode("az", without="z"), "an error")
check("PIPELINE-ID-1", lambda: encode_ordinary("a<t>", "<t>"), [97, 256])
check("LAW-ROUNDTRIP-1", lambda: len(encode("a" * 100)), 100)
check("DETOK-EQUAL-1", lambda: streamed("\u20ac".encode()), "\u20ac")
check("DECODE-BYTES-1", lambda: decode([195, 169]), "\xe9")
check("DECODE-SPECIAL-1", lambda: len(decode([256] * 100, special=[f"<{'x' * 100}>"])), 10200)
check("PIPELINE-ORDER-1", lambda: with_normalized("<<t>\n", "<t>", "<s>"), [60, 256, 10])
check("PIPELINE-NORM-1", lambda: encode("\xb2", normalizer="NFKC"), [50])
check("PIPELINE-ADDED-1", lambda: piped("aa+[x", added=["a+", "[x"]), [97, 256, 257])
check("PIPELINE-ADDED-2", lambda: piped("\u1ea1", forms=["NFC"], added=["a\u0323"], flags=normalized), [256])
check("PIPELINE-WORD-1", lambda: piped("xab", added=["ab"], flags=single_word), [120, 97, 98])
check("PIPELINE-STRIP-1", lambda: piped("a<m>  b", added=["<m>"], flags=rstrip), [97, 256, 98])
check("PIPELINE-SPLIT-2", crash, 0)
check("PIPELINE-SPLIT-3", lambda: piped("a1", split("[0-9]", "MergedWithNext", True), level(own=False)), [97, 49])
check("PIPELINE-SPLIT-4", lambda: piped("ab", split("(?=b)"), level(own=False)), [97, 98])
check("PIPELINE-DIGITS-1", lambda: piped("\xbdx", digits, level(own=False), merges=[("\xbd", "x")]), [194, 189, 120])
check("PIPELINE-MAPPED-1", lambda: piped("\xb2", *after, merges=[("\xc2", "\xb2")]), [194, 178])
finish()
