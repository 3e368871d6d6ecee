"""Show the findings in onnxruntime-extensions. Run it with `pip install onnxruntime-extensions==0.15.2`."""

import json
import tempfile
from pathlib import Path

from onnxruntime_extensions import pp_api
from shared import LLAMA3, check, exit_status, finish, tokenizer_json

UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = "|".join(
    [
        rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{SUFFIX}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{SUFFIX}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


def load(**options):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tokenizer.json").write_text(tokenizer_json(**options), "utf-8")
        kind = "PreTrainedTokenizerFast" if "pattern" in options else "GPT2Tokenizer"
        Path(folder, "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind}), "utf-8")
        return pp_api.Tokenizer(folder, {"skip_special_tokens": False})


def encode(text, **options):
    return list(load(**options).tokenize(text))


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
finish()
