"""Show the findings in pytorch-tokenizers. Run it with `pip install pytorch-tokenizers==1.5.0`."""

import json

from pytorch_tokenizers import CppHFTokenizer
from shared import check, exit_status, finish, level, loaded, pipeline_json, split, tokenizer_json


def load(**options):
    made = CppHFTokenizer()
    loaded(made.load, tokenizer_json(**options))
    return made


def piped(text, *steps, **options):
    made = CppHFTokenizer()
    loaded(made.load, pipeline_json(*steps, **options))
    return list(made.encode(text))


def without_steps():
    made = CppHFTokenizer()
    document = json.loads(tokenizer_json())
    document["normalizer"] = {"type": "Sequence", "normalizers": []}
    loaded(made.load, json.dumps(document))
    return list(made.encode("a"))


pairs = [("b", "c"), ("a", "b"), ("ab", "c")]
check("MERGE-ORDER-1", lambda: list(load(merges=pairs).encode("abc")), [97, 256])
check("SPECIAL-DECODE-1", lambda: load(special=["\xe9|"]).decode_batch([256]), "\xe9|")
check("DECODE-UTF8-1", lambda: load().decode_batch([128]), "\ufffd")
check("ERROR-TABLE-1", lambda: list(load(without="z").encode("az")), "an error")
check("LAW-LONG-2", lambda: exit_status(lambda: load().encode("a" * 70_000)), 0)
signs = {"type": "Punctuation", "behavior": "Isolated"}
one, strip, normal = ({name: True} for name in ("single_word", "lstrip", "normalized"))
check("PIPELINE-ORDER-1", lambda: piped("abcd", added=["bc", "abcd"], flags=normal), [97, 256, 100])
check("PIPELINE-WORD-1", lambda: piped("xab", added=["ab"], flags=one), [120, 97, 98])
check("PIPELINE-STRIP-1", lambda: piped("a <m>", added=["<m>"], flags=strip), [97, 256])
check("PIPELINE-LOAD-1", without_steps, [97])
check("PIPELINE-NORM-1", lambda: piped("e\u0323\u0302", forms=["NFC"]), [225, 187, 135])
check("PIPELINE-SPLIT-1", lambda: piped("ab", split("b"), level(own=False)), [97, 98])
check("PIPELINE-PUNCTUATION-1", lambda: piped("a!", signs, level()), [97, 33])
finish()
