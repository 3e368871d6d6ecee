"""Show the findings in uni-tokenizer. Run it with `pip install uni-tokenizer==0.1.7`."""

import sys

from uni_tokenizer import BpeEncoder, BpeTrainer, PreTokenizer

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
failed = []


def check(clause, call, expected):
    """Print the answer of `call` and the expected one."""
    try:
        got = call()
    except BaseException as error:
        refused = expected == "an error" and isinstance(error, Exception)
        got = expected if refused else f"{type(error).__name__}: {error}"
    failed.append(got != expected)
    print(f"{clause}: {got!r}, expected {expected!r}")


def encode(text, special, absent=()):
    tokens = [bytes([byte]) for byte in range(256)] + [token.encode() for token in special if token not in absent]
    vocab = {token: number for number, token in enumerate(tokens)}
    return list(BpeEncoder(vocab=vocab, merges=[], special_tokens=list(special), pat_str=GPT2).encode(text))


def train(text, vocab_size, special):
    """Return the learned tokens."""
    counter = PreTokenizer(special, pat_str=GPT2).word_counter()
    counter.add_text(text)
    trainer = BpeTrainer(special)
    trainer.add_word_counter(counter)
    trainer.train(vocab_size)
    vocab = trainer.validate_model().vocab
    return sorted(bytes(token) for token, index in vocab.items() if index >= 256 + len(special))


check("SPECIAL-SCAN-1", lambda: encode("<|e|><|e|>", ["<|e|>", "<|e|><|e|>"]), [257])
check("TRAIN-SPECIAL-1", lambda: train("abyz\nabyz", 259, ["ab", "abyz"]), [])
check("SPECIAL-ABSENT-1", lambda: encode("a<|e|>b", ["<|e|>"], absent=["<|e|>"]), [97, 256, 98])
sys.exit(any(failed))
