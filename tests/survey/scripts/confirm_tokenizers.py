"""Show the findings in Hugging Face's tokenizers. Run it with `pip install tokenizers==0.23.3`."""

from shared import check, finish
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


decoded = tokenizer(special=["\xe9|"])
check("SPECIAL-DECODE-1", lambda: decoded.decode(decoded.encode("\xe9|").ids, skip_special_tokens=False), "\xe9|")
check("SPECIAL-ABSENT-2", absent, True)
check("ERROR-TABLE-1", lambda: tokens("az", without="z"), "an error")
finish()
