"""Show the findings in iree-tokenizer. Run it with `pip install iree-tokenizer==0.3.0`."""

import json

from iree.tokenizer import Tokenizer
from shared import LLAMA3, check, finish, tokenizer_json


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


lines = [("\u010a", "\u0109"), ("\u010a\u0109", "\u010a")]
check("MERGE-ORDER-1", lambda: encode("ccc", merges=[("c", "c"), ("c", "cc")]), [256, 99])
check("SPLIT-LLAMA3-1", lambda: encode("\n\t\n", merges=lines, pattern=LLAMA3), [257])
check("PIPELINE-ID-1", lambda: encode_ordinary("a<t>", "<t>"), [97, 256])
check("LAW-ROUNDTRIP-1", lambda: len(encode("a" * 100)), 100)
check("DETOK-EQUAL-1", lambda: streamed("\u20ac".encode()), "\u20ac")
check("DECODE-BYTES-1", lambda: decode([195, 169]), "\xe9")
check("DECODE-SPECIAL-1", lambda: len(decode([256] * 100, special=[f"<{'x' * 100}>"])), 10200)
check("PIPELINE-ORDER-1", lambda: with_normalized("<<t>\n", "<t>", "<s>"), [60, 256, 10])
check("PIPELINE-NORM-1", lambda: encode("\xb2", normalizer="NFKC"), [50])
finish()
