"""Show the findings in onnxruntime-extensions. Run it with `pip install onnxruntime-extensions==0.15.2`."""

import json
import signal
import tempfile
from pathlib import Path

from onnxruntime_extensions import pp_api
from shared import LLAMA3, O200K, check, exit_status, finish, level, pipeline_json, split, tokenizer_json


def load(text="", **options):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tokenizer.json").write_text(text or tokenizer_json(**options), "utf-8")
        kind = "PreTrainedTokenizerFast" if text or "pattern" in options else "GPT2Tokenizer"
        Path(folder, "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind}), "utf-8")
        return pp_api.Tokenizer(folder, {"skip_special_tokens": False})


def encode(text, **options):
    return list(load(**options).tokenize(text))


def piped(text, *steps, **options):
    return list(load(pipeline_json(*steps, **options)).tokenize(text))


def decode(ids, **options):
    return load(**options).detokenize(ids)[0]


pairs = [("b", "c"), ("a", "b"), ("ab", "c")]
check("MERGE-ORDER-1", lambda: encode("abc", merges=pairs), [97, 256])
check("BYTES-TEXT-3", lambda: encode("a\0b"), [97, 0, 98])
check("DECODE-UTF8-1", lambda: decode([255, 255]), "\ufffd\ufffd")
check("SPECIAL-SCAN-1", lambda: encode("10003", special=["00"]), [49, 256, 48, 51])
check("SPLIT-SPACE-3", lambda: len(encode("a \x85b", merges=[("\u0120", "\xc2")])), 5)
check("SPLIT-O200K-6", lambda: encode("a;\n//", merges=[("\u010a", "/")], pattern=O200K), [97, 59, 256, 47])
check("SPLIT-CL100K-2023-1", lambda: encode("'\u017fa", merges=[("\xbf", "a")], pattern=LLAMA3), [39, 197, 191, 97])
check("ERROR-TABLE-1", lambda: exit_status(lambda: encode("az", without="z")), 1)
check("DECODE-BYTES-1", lambda: exit_status(lambda: encode("az", extra=["ab"], gap=1)), 0)
check("DECODE-EMPTY-1", lambda: decode([]), "")
digits, signs = {"type": "Digits", "individual_digits": True}, {"type": "Punctuation", "behavior": "Isolated"}
one, strip, normal = ({name: True} for name in ("single_word", "lstrip", "normalized"))
check("PIPELINE-ORDER-1", lambda: piped("abcd", added=["bc", "abcd"], flags=normal), [97, 256, 100])
check("PIPELINE-WORD-1", lambda: piped("xab", added=["ab"], flags=one), [120, 97, 98])
check("PIPELINE-STRIP-1", lambda: piped("a <m>", added=["<m>"], flags=strip), [97, 256])
check("PIPELINE-NORM-1", lambda: piped("e\u0301", forms=["NFC"]), [195, 169])
check("PIPELINE-SPLIT-1", lambda: piped("ab", split("b"), level(own=False)), [97, 98])
check("PIPELINE-DIGITS-1", lambda: piped("00", digits, level(own=False), merges=[("0", "0")]), [48, 48])
check("PIPELINE-PUNCTUATION-1", lambda: piped("!?", signs, level(own=False), merges=[("!", "?")]), [33, 63])
check("PIPELINE-MAPPED-1", lambda: piped("\xb2", level(), digits, merges=[("\xc2", "\xb2")]), [194, 178])
check("PIPELINE-PREFIX-1", lambda: piped("a", level(prefix=True)), [32, 97])
check("PIPELINE-LOAD-1", lambda: exit_status(lambda: [signal.alarm(5), encode("##", merges=[("#", "#")])]), 0)
finish()
