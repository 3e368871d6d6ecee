"""Show the findings in ffbpe. Run it with `pip install ffbpe==0.1.10`."""

import json
import tempfile
from pathlib import Path

from ffbpe import BpeEncoder, BpeTrainer, PreTokenizer
from shared import GPT2, SPELLED, check, finish


def encode(text, special):
    tokens = [bytes([byte]) for byte in range(256)] + [token.encode() for token in special]
    vocab = {token: number for number, token in enumerate(tokens)}
    return list(BpeEncoder(vocab=vocab, merges=[], special_tokens=list(special), pat_str=GPT2).encode(text))


def train(text, vocab_size, special=()):
    """Return the learned tokens."""
    special = list(special)
    counter = PreTokenizer(special, pat_str=GPT2).word_counter()
    counter.add_text(text)
    trainer = BpeTrainer(special)
    trainer.add_word_counter(counter)
    trainer.train(vocab_size)
    vocab = trainer.validate_model().vocab
    return sorted(bytes(token) for token, index in vocab.items() if index >= 256 + len(special))


def header():
    vocab = {token: number for number, token in enumerate([*SPELLED.values(), "ab"])}
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("vocab.json", "merges.txt")]
        files[0].write_text(json.dumps(vocab), "utf-8")
        files[1].write_text("#version: 0.2\na b\n", "utf-8")
        made = BpeEncoder.load(vocab_file=str(files[0]), merges_file=str(files[1]), special_tokens=None, pat_str=GPT2)
    return list(made.encode("ab"))


check("TRAIN-TIE-1", lambda: train("ab\nba", 257), [b"ba"])  # the lexicographically greater
check("SPECIAL-SCAN-1", lambda: encode("<|e|><|e|>", ["<|e|>", "<|e|><|e|>"]), [257])
check("TRAIN-SPECIAL-1", lambda: train("abyz\nabyz", 259, ["ab", "abyz"]), [])
check("FILE-VERSION-1", header, [256])
check("TRAIN-SIZE-4", lambda: train("abab", 258, ["<|e|>", "<|e|>"]), [b"ab"])
finish()
