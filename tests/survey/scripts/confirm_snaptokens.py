"""Show the findings in snaptokens. Run it with `pip install snaptokens==0.2.6`."""

import snaptokens
from shared import check, finish, level, loaded, pipeline_json, split, tokenizer_json


def encode(text, **options):
    return list(loaded(snaptokens.Tokenizer.from_file, tokenizer_json(**options)).encode(text).ids)


def piped(text, *steps, **options):
    return list(loaded(snaptokens.Tokenizer.from_file, pipeline_json(*steps, **options)).encode(text).ids)


check("PIPELINE-NORM-1", lambda: encode("\xb2", normalizer="NFKC"), [50])
check("MERGE-ID-1", lambda: encode("ab", merges=[("a", "b")], gap=20), [276])
check("PIPELINE-SPLIT-1", lambda: piped("a-b", split("-"), level(own=False)), [97, 45, 98])
finish()
