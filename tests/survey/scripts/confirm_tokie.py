"""Show the findings in tokie. Run it with `pip install tokie==0.1.4`."""

import json

import tokie
from shared import check, exit_status, finish, level, loaded, pipeline_json, split, tokenizer_json

CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


def load(document=None, **options):
    return loaded(tokie.Tokenizer.from_json, document or tokenizer_json(**options))


def piped(text, *steps, **options):
    return list(load(pipeline_json(*steps, **options)).encode(text, add_special_tokens=False).ids)


def encode(text, **options):
    return list(load(**options).encode(text, add_special_tokens=False).ids)


def renumbered(text, ids, merges):
    """Encode with other ids for the results of the merges."""
    document = json.loads(tokenizer_json(merges=merges))
    document["model"]["vocab"] |= {"".join(pair): index for pair, index in zip(merges, ids, strict=True)}
    made = load(json.dumps(document))
    return list(made.encode(text, add_special_tokens=False).ids)


def decode_second():
    """Decode the second of two added tokens that are not in the vocabulary."""
    document = json.loads(tokenizer_json(special=["<a>", "<b>"]))
    del document["model"]["vocab"]["<a>"], document["model"]["vocab"]["<b>"]
    return load(json.dumps(document)).decode([257])


pairs = [("b", "c"), ("a", "b"), ("ab", "c")]
doubled = [("a" * 2**power, "a" * 2**power) for power in range(15)]
check("SPLIT-SPACE-2", lambda: encode("\ta", merges=[("\u0109", "a")]), [9, 97])
check("SPLIT-CONTRACTION-2", lambda: encode("x'T", merges=[("'", "T")]), [120, 39, 84])
check("SPLIT-UNICODE-1", lambda: encode("V\u2167", merges=[("V", "\xe2")]), [86, 226, 133, 167])
check("SPLIT-NAME-1", lambda: encode("a\n ", merges=[("\u010a", "\u0120")], pattern=CL100K), [97, 256])
check("SPLIT-NONE-1", lambda: encode("a b", merges=[("a", "\u0120"), ("a\u0120", "b")], pattern=r"[\s\S]+"), [257])
check("MERGE-RANK-1", lambda: renumbered("abc", [257, 256], [("b", "c"), ("a", "b")]), [97, 257])
check("MERGE-ID-1", lambda: renumbered("ab", [100000], [("a", "b")]), [100000])
check("LAW-LONG-2", lambda: {*encode("ab" * 5001, merges=[("a", "b")])}, {256})  # on two processors and more
check("LAW-LONG-1", lambda: exit_status(lambda: load(merges=doubled)), 0)
check("ERROR-TABLE-1", lambda: encode("az", without="z"), "an error")
check("DECODE-UTF8-1", lambda: load().decode([128]), "\ufffd")
check("SPECIAL-SCAN-1", lambda: encode("x<|a|>z", special=["<|a|>", "x<|a|>y"]), [120, 256, 122])
check("DECODE-UNKNOWN-1", lambda: load().decode([97, 999]), "an error")
check("MERGE-ORDER-1", lambda: encode("abc", merges=pairs), [97, 256])
check("SPECIAL-DECODE-1", lambda: load(special=["\xe9|"]).decode([256]), "\xe9|")
check("OFFSET-UNIT-1", lambda: load().encode_with_offsets("\xe9x").offsets[-1], (1, 2))
check("DECODE-SPECIAL-1", decode_second, "<b>")
check("PIPELINE-NORM-1", lambda: encode("\xb2", normalizer="NFKC"), [50])
check("OFFSET-SPECIAL-1", lambda: list(load(special=["<s>"]).encode_with_offsets("<s>").ids), [256])
check("PIPELINE-ORDER-1", lambda: piped("ad", added=["d"], merges=[("a", "d")]), [97, 100])
check("PIPELINE-SPLIT-1", lambda: piped("--", split("-"), level(own=False), merges=[("-", "-")]), [45, 45])
check("PIPELINE-PREFIX-1", lambda: piped("a", level(prefix=True)), [32, 97])
finish()
