"""Show the findings in snaptokens. Run it with `pip install snaptokens==0.2.6`."""

import snaptokens
from shared import LLAMA3, O200K, SPELLED, check, finish, level, loaded, pipeline_json, split, tokenizer_json


def encode(text, **options):
    return list(loaded(snaptokens.Tokenizer.from_file, tokenizer_json(**options)).encode(text).ids)


def decode(ids, **options):
    made = loaded(snaptokens.Tokenizer.from_file, tokenizer_json(**options))
    return made.decode(ids, skip_special_tokens=False)


def piped(text, *steps, **options):
    return list(loaded(snaptokens.Tokenizer.from_file, pipeline_json(*steps, **options)).encode(text).ids)


check("PIPELINE-NORM-1", lambda: encode("\xb2", normalizer="NFKC"), [50])
check("MERGE-ID-1", lambda: encode("ab", merges=[("a", "b")], gap=20), [276])
check("PIPELINE-SPLIT-1", lambda: piped("a-b", split("-"), level(own=False)), [97, 45, 98])
check("SPLIT-LLAMA3-1", lambda: encode("'\u017fb", pattern=LLAMA3, merges=[("\xbf", "b")]), [39, 197, 191, 98])
marked = [(SPELLED[0x81], "S")]
check("SPLIT-O200K-2", lambda: encode("\u0301S", pattern=O200K, merges=marked), [204, 129, 83])
check("SPECIAL-DECODE-1", lambda: decode([256], special=["\xe9|"]), "\xe9|")
check("DECODE-UNKNOWN-1", lambda: decode([97, 999]), "an error")
finish()
