"""Show the findings in pytorch-tokenizers. Run it with `pip install pytorch-tokenizers==1.5.0`."""

from pytorch_tokenizers import CppHFTokenizer
from shared import check, exit_status, finish, loaded, tokenizer_json


def load(**options):
    made = CppHFTokenizer()
    loaded(made.load, tokenizer_json(**options))
    return made


pairs = [("b", "c"), ("a", "b"), ("ab", "c")]
check("MERGE-ORDER-1", lambda: list(load(merges=pairs).encode("abc")), [97, 256])
check("SPECIAL-DECODE-1", lambda: load(special=["\xe9|"]).decode_batch([256]), "\xe9|")
check("DECODE-UTF8-1", lambda: load().decode_batch([128]), "\ufffd")
check("ERROR-TABLE-1", lambda: list(load(without="z").encode("az")), "an error")
check("LAW-LONG-2", lambda: exit_status(lambda: load().encode("a" * 70_000)), 0)
finish()
