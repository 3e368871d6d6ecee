"""Show the findings in minibperust. Run it with `pip install minibperust==0.1.0`."""

from MiniBpeRust import FastRegexTokenizer
from shared import GPT2, check, finish


def encode(text, special):
    made = FastRegexTokenizer(GPT2)
    made.register_special_tokens({token: 256 + number for number, token in enumerate(special)})
    return list(made.encode(text, allowed_special="all"))


check("SPECIAL-SCAN-1", lambda: encode("<|e|><|e|>", ["<|e|>", "<|e|><|e|>"]), [257])
check("SPECIAL-EMPTY-1", lambda: encode("abc d", [""]), [97, 98, 99, 32, 100])
finish()
