"""Show the findings in Hugging Face's tokenizers. Run it with `pip install tokenizers==0.23.3`."""

import time

from shared import SPELLED, check, finish
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers


def tokenizer(merges=(), special=(), without="", gap=0):
    """Return a byte-level tokenizer; its ids are those of the sorted alphabet, then those of the merges."""
    vocab = {token: n for n, token in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet())) if token not in without}
    for left, right in merges:
        vocab[left + right] = len(vocab) + gap
    made = Tokenizer(models.BPE(vocab=vocab, merges=list(merges)))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    return made


def tokens(text, **options):
    return tokenizer(**options).encode(text).tokens


def absent():
    made = tokenizer([("a", "b"), ("c", "d")], ["<|e|>"], gap=1)
    return made.token_to_id("<|e|>") != made.token_to_id("cd")


def stream(data):
    """Return what DecodeStream gives for each byte."""
    made, steps = tokenizer(), decoders.DecodeStream(skip_special_tokens=False)
    ids = [made.token_to_id(SPELLED[byte]) if byte < 256 else byte for byte in data]
    return [steps.step(made, index) for index in ids]


def grows():
    times = []
    for count in (1000, 8000):
        started = time.process_time()
        stream(b"\x80" * count)
        times.append(time.process_time() - started)
    return times[1] > 23 * times[0]


decoded = tokenizer(special=["\xe9|"])
check("SPECIAL-DECODE-1", lambda: decoded.decode(decoded.encode("\xe9|").ids, skip_special_tokens=False), "\xe9|")
check("SPECIAL-ABSENT-2", absent, True)
check("ERROR-TABLE-1", lambda: tokens("az", without="z"), "an error")
check("DETOK-END-1", lambda: stream(b"\xc3"), ["\ufffd"])
check("DETOK-HELD-1", lambda: stream(b"a" + b"\x80" * 9)[-1] is not None, True)
check("DETOK-UNKNOWN-1", lambda: stream([97, 999]), "an error")
check("DETOK-COST-2", grows, False)
finish()
