"""Show the findings in kitoken. Run it with `pip install kitoken==0.11.1`."""

import kitoken
from shared import check, finish, loaded, tokenizer_json


def encode(text, **options):
    return list(loaded(kitoken.Kitoken.from_tokenizers_file, tokenizer_json(**options)).encode(text, True))


pairs = [("b", "c"), ("a", "b"), ("ab", "c")]
check("SPLIT-SPACE-2", lambda: encode("\na", merges=[("\u010a", "a")]), [10, 97])
check("SPECIAL-SCAN-1", lambda: encode("<|e|><|e|>", special=["<|e|>", "<|e|><|e|>"]), [257])
check("ERROR-TABLE-1", lambda: encode("az", without="z"), "an error")
check("SPECIAL-EMPTY-1", lambda: encode("<|e|>abc", special=["<|e|>", ""]), [256, 97, 98, 99])
check("MERGE-LOOKUP-1", lambda: encode("xabc", merges=pairs), [120, 97, 256])
finish()
