"""Show the findings in morpheme. Run it with `pip install morpheme==0.5.0`."""

import morpheme
from shared import begun_json, check, finish, tokenizer_json


def load(**options):
    return morpheme.Tokenizer.from_str(tokenizer_json(**options))


def decode_special(ids, **options):
    return load(**options).decode(ids, skip_special_tokens=False)


check("ERROR-TABLE-1", lambda: load(without="z").encode("az").ids, "an error")
check("SPECIAL-DECODE-1", lambda: decode_special([256], special=["\xe9|"]), "\xe9|")
check("DECODE-UNKNOWN-1", lambda: decode_special([97, 999]), "an error")
aq = morpheme.Tokenizer.from_str(begun_json("aq", "\t\t"))
check("PIPELINE-STRIP-1", lambda: aq.encode("aq\t\t  b").ids, [256, 257, 32, 32, 98])
marked = morpheme.Tokenizer.from_str(begun_json("<m>", " x"))
check("OFFSET-SPECIAL-1", lambda: marked.encode("<m>  x").offsets, [(0, 5), (4, 6)])
finish()
