"""Show the findings in tuetoken. Run it with `pip install tuetoken==0.1.3`."""

import tuetoken
from shared import LLAMA3, O200K, SPELLED, check, finish, level, loaded, pipeline_json, split, tokenizer_json

CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|(?>\p{N}{1,3})"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


def load(text):
    return loaded(tuetoken.AutoTokenizer.from_file, text)


def encode(text, **options):
    return load(tokenizer_json(**options)).encode(text, add_special_tokens=False)


def piped(text, *steps, **options):
    return load(pipeline_json(*steps, **options)).encode(text, add_special_tokens=False)


digits = {"type": "Digits", "individual_digits": False}
normalized, single_word, lstrip = {"normalized": True}, {"single_word": True}, {"lstrip": True}
long_s = [(SPELLED[0xBF], "b")]
cased = [(SPELLED[0xAD], "A")]
marked = [(SPELLED[0x81], "S")]
check("SPLIT-NAME-1", lambda: encode("a\n ", pattern=CL100K, merges=[("\u010a", "\u0120")]), [97, 256])
check("SPLIT-LLAMA3-1", lambda: encode("'\u017fb", pattern=LLAMA3, merges=long_s), [39, 197, 191, 98])
check("SPLIT-O200K-1", lambda: encode("\u4e2dA", pattern=O200K, merges=cased), [228, 184, 173, 65])
check("SPLIT-O200K-2", lambda: encode("\u0301S", pattern=O200K, merges=marked), [204, 129, 83])
check("SPECIAL-DECODE-1", lambda: load(tokenizer_json(special=["\xe9|"])).decode([256]), "\xe9|")
check("ERROR-TABLE-1", lambda: encode("az", without="z"), "an error")
check("DECODE-UNKNOWN-1", lambda: load(tokenizer_json()).decode([97, 999]), "an error")
check("PIPELINE-ORDER-1", lambda: piped("abcd", added=["bc", "abcd"], flags=normalized), [97, 256, 100])
check("PIPELINE-WORD-1", lambda: piped("xab", added=["ab"], flags=single_word), [120, 97, 98])
check("PIPELINE-STRIP-1", lambda: piped("a\xa0<m>", added=["<m>"], flags=lstrip), [97, 256])
check("PIPELINE-NORM-1", lambda: piped("e\u0301", forms=["NFKD", "NFC"]), [195, 169])
check("PIPELINE-SPLIT-2", lambda: piped("a-b", split("-", "Removed"), level(own=False)), [97, 98])
text = {**split("-"), "pattern": {"String": "-"}}
check("PIPELINE-LOAD-1", lambda: piped("a-b", text, level(own=False)), [97, 45, 98])
twice = [("a", "b"), ("b", "a")]
check("PIPELINE-SPLIT-4", lambda: piped("abab", split("(?=b)"), level(own=False), merges=twice), [97, 257, 98])
check("PIPELINE-MAPPED-1", lambda: piped("\xb2", level(), digits, merges=[("\xc2", "\xb2")]), [194, 178])
check("PIPELINE-PREFIX-1", lambda: piped("a", level(prefix=True)), [32, 97])
finish()
