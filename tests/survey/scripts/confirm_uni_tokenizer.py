"""Show the findings in uni-tokenizer. Run it with `pip install uni-tokenizer==0.1.7`."""

from shared import GPT2, check, finish
from uni_tokenizer import BpeEncoder, BpeTrainer, PreTokenizer


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
finish()
