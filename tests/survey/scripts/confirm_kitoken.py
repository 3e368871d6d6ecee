"""Show the findings in kitoken. Run it with `pip install kitoken==0.11.1`."""

import kitoken
from shared import check, finish, level, loaded, pipeline_json, split, tokenizer_json


def encode(text, **options):
    return list(loaded(kitoken.Kitoken.from_tokenizers_file, tokenizer_json(**options)).encode(text, True))


def piped(text, *steps, **options):
    return list(loaded(kitoken.Kitoken.from_tokenizers_file, pipeline_json(*steps, **options)).encode(text, True))


pairs = [("b", "c"), ("a", "b"), ("ab", "c")]
check("SPLIT-SPACE-2", lambda: encode("\na", merges=[("\u010a", "a")]), [10, 97])
check("SPECIAL-SCAN-1", lambda: encode("<|e|><|e|>", special=["<|e|>", "<|e|><|e|>"]), [257])
check("ERROR-TABLE-1", lambda: encode("az", without="z"), "an error")
check("SPECIAL-EMPTY-1", lambda: encode("<|e|>abc", special=["<|e|>", ""]), [256, 97, 98, 99])
check("MERGE-LOOKUP-1", lambda: encode("xabc", merges=pairs), [120, 97, 256])
digits = {"type": "Digits", "individual_digits": False}
mapped = [("\xc2", "\xb2")]
check("PIPELINE-ADDED-1", lambda: piped("abc", added=["ab", "abc", "bc"]), [257])
check("PIPELINE-ADDED-2", lambda: piped("\u1ea1", forms=["NFD"], added=["\u1ea1"], flags={"normalized": True}), [256])
check("PIPELINE-WORD-1", lambda: piped("xab", added=["ab"], flags={"single_word": True}), [120, 97, 98])
check("PIPELINE-STRIP-1", lambda: piped("a <m>", added=["<m>"], flags={"lstrip": True}), [97, 256])
previous = split("[0-9]", "MergedWithPrevious", True)
check("PIPELINE-SPLIT-3", lambda: piped("a1", previous, level(own=False), merges=[("a", "1")]), [97, 49])
check("PIPELINE-MAPPED-1", lambda: piped("\xb2", level(), digits, merges=mapped), [194, 178])
check("PIPELINE-PREFIX-1", lambda: piped("a-b", split("-"), level(prefix=True)), [32, 97, 32, 45, 32, 98])
finish()
