"""Show the findings in fastokens. Run it with `pip install fastokens==0.3.5`."""

import base64
import json
import tempfile
from pathlib import Path

import fastokens
from shared import GPT2, LLAMA3, SPELLED, check, finish, level, loaded, pipeline_json, tokenizer_json


def load(document=None, **options):
    return loaded(fastokens.Tokenizer.from_file, document or tokenizer_json(**options))


def piped(text, *steps, **options):
    return list(load(pipeline_json(*steps, **options)).encode(text).ids)


def from_ranks(learned=()):
    tokens = [bytes([byte]) for byte in range(256)] + list(learned)
    lines = [f"{base64.b64encode(token).decode()} {number}" for number, token in enumerate(tokens)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "ranks.tiktoken")
        file.write_text("\n".join(lines), "utf-8")
        return fastokens.Tokenizer.from_tiktoken(str(file), GPT2, {})


def gap():
    document = json.loads(tokenizer_json(merges=[("a", "b")]))
    document["model"]["vocab"]["ab"] = 300
    return list(load(json.dumps(document)).encode("ab").ids)


long_s = [("\xbf", "a")]
check("MERGE-ID-1", gap, [300])
check("SPLIT-LLAMA3-1", lambda: list(load(merges=long_s, pattern=LLAMA3).encode("'\u017fa").ids), [39, 197, 191, 97])
runs = {"pattern": r"\S+|\s+", "merges": [("x", SPELLED[0xE1])]}
check("SPLIT-DEFAULT-1", lambda: list(load(**runs).encode("x\u180e").ids), [256, 160, 142])
check("DECODE-UNKNOWN-1", lambda: load().decode([97, 999]), "an error")
check("SPECIAL-DECODE-1", lambda: load(special=["\xe9|"]).decode([256]), "\xe9|")
check("MERGE-WHOLE-1", lambda: list(from_ranks([b"abc"]).encode("abc").ids), [256])
check("SPLIT-SPACE-3", lambda: len(from_ranks([b" \xe1"]).encode(" \u180eb").ids), 4)
check("PIPELINE-NORM-1", lambda: list(load(normalizer="NFKC").encode("\xb2").ids), [50])
punctuation = {"type": "Punctuation", "behavior": "Isolated"}
both = {"normalized": True, "single_word": True}
check("PIPELINE-ORDER-1", lambda: piped("abcd", added=["bc", "abcd"], flags={"normalized": True}), [97, 256, 100])
check("PIPELINE-WORD-1", lambda: piped("xyab", added=["xy", "ab"], flags=both), [256, 257])
check("PIPELINE-PUNCTUATION-1", lambda: piped("a!", punctuation, level()), [97, 33])
finish()
