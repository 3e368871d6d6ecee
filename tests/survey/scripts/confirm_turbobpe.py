"""Show the findings in turbobpe. Run it with `pip install turbobpe==0.1.2`."""

from shared import GPT2, check, finish
from turbobpe import RegexTokenizer


def encode(text, special):
    made = RegexTokenizer(GPT2)
    made.register_special_tokens({token: 256 + number for number, token in enumerate(special)})
    return list(made.encode(text, allowed_special="all"))


def best():
    made = RegexTokenizer(GPT2)
    made.train("aaa\naaa\naaa\nzy\nzy", 258)
    return list(made.merges)


check("SPECIAL-SCAN-1", lambda: encode("<|e|><|e|>", ["<|e|>", "<|e|><|e|>"]), [257])
check("SPECIAL-EMPTY-1", lambda: encode("abc d", [""]), [97, 98, 99, 32, 100])
check("SPLIT-DEFAULT-1", lambda: list(RegexTokenizer("(a)b|c").encode("abc")), [97, 98, 99])
check("TRAIN-BEST-1", best, [(97, 97), (256, 97)])
finish()
