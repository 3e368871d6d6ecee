"""Show the findings in splintr. Run it with `pip install splintr-rs==0.22.0`."""

import base64
import json

import splintr
from shared import GPT2, LLAMA3, begun_json, check, finish, level, loaded, pipeline_json, split, tokenizer_json


def from_ranks(learned=(), special=(), without=b"", pattern=GPT2):
    tokens = [bytes([byte]) for byte in range(256) if byte not in without] + list(learned)
    lines = [f"{base64.b64encode(token).decode()} {number}" for number, token in enumerate(tokens)]
    numbered = {token: 300 + number for number, token in enumerate(special)}
    return splintr.Tokenizer.from_bytes("\n".join(lines).encode(), pattern, numbered)


def piped(text, *steps, **options):
    return list(loaded(splintr.from_json, pipeline_json(*steps, **options)).encode(text))


def from_json(**options):
    return loaded(splintr.from_json, tokenizer_json(**options))


def in_batch(text):
    document = json.loads(tokenizer_json(special=["<s>"]))
    parts = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    special = {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}}
    document["post_processor"] = {"type": "TemplateProcessing", "single": parts, "pair": parts}
    document["post_processor"]["special_tokens"] = special
    tokenizer = loaded(splintr.from_json, json.dumps(document))
    assert tokenizer.encode_raw(text) == [*text.encode()]
    return tokenizer.encode_batch([text])[0]


cl100k = splintr.Tokenizer.from_pretrained("cl100k_base")
o200k = splintr.Tokenizer.from_pretrained("o200k_base")
pairs = [("b", "c"), ("a", "b"), ("ab", "c")]
long_s = from_ranks([b"\xbfa"], pattern=LLAMA3)
check("DECODE-UNKNOWN-1", lambda: from_ranks().decode_lossy([97, 99999]), "an error")
check("SPLIT-LLAMA3-1", lambda: list(long_s.encode("'\u017fa")), [39, 197, 191, 97])
digits = from_ranks([b"4\xd9", "4\u0661".encode()], pattern=r"\d+|\D+")
check("SPLIT-DEFAULT-1", lambda: list(digits.encode("4\u0661")), [257])
check("SPLIT-O200K-3", lambda: o200k.decode_bytes(o200k.encode("a'\u017f'ScD")[-2:]), b"ScD")
check("SPECIAL-EMPTY-1", lambda: list(from_ranks(special=[""]).encode_with_special("ab")), [97, 98])
check("ERROR-TABLE-1", lambda: list(from_ranks(without=b"z").encode("az")), "an error")
check("MERGE-LOOKUP-1", lambda: list(from_json(merges=pairs).encode("xabc")), [120, 97, 256])
check("MERGE-WHOLE-1", lambda: list(from_json(merges=[("a", "b")], extra=["abc"]).encode("abc")), [257])
check("SPECIAL-DECODE-1", lambda: from_json(special=["\xe9|"]).decode_with_special([256]), "\xe9|")
check("SPECIAL-OFF-1", lambda: list(cl100k.encode("<|im_start|>")), [27, 91, 318, 5011, 91, 29])
check("PIPELINE-ORDER-1", lambda: piped("abcd", added=["bc", "abcd"], flags={"normalized": True}), [97, 256, 100])
check("PIPELINE-WORD-1", lambda: piped("xab", added=["ab"], flags={"single_word": True}), [120, 97, 98])
begun = begun_json("aq", "\t\t")
check("PIPELINE-STRIP-1", lambda: list(loaded(splintr.from_json, begun).encode("aq\t\t  b")), [256, 257, 32, 32, 98])
pair = [("-", "-")]
check("PIPELINE-SPLIT-2", lambda: piped("--", split("-", "MergedWithNext"), level(own=False), merges=pair), [45, 45])
check("PIPELINE-PREFIX-1", lambda: piped("a-b", split("-"), level(prefix=True)), [32, 97, 32, 45, 32, 98])
check("PIPELINE-WAYS-1", lambda: in_batch("a"), [97])
finish()
