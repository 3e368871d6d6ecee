"""Show the findings in gigatoken. Run it with `pip install gigatoken==0.10.0`."""

import json
import sys
import tempfile
from pathlib import Path

import gigatoken

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


def tokenizer_json(merges=(), special=(), without="", pattern=None, extra=()):
    """Return a byte-level tokenizer.json as text; merges are in its spelling."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spelled = [chr(byte) for byte in plain] + [chr(256 + number) for number in range(68)]
    bytes_ = plain + [byte for byte in range(256) if byte not in plain]
    vocab = {token: byte for token, byte in zip(spelled, bytes_, strict=True) if token not in without}
    for token in ["".join(pair) for pair in merges] + [*extra, *special]:
        vocab[token] = max(vocab.values()) + 1
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    added = [{"id": vocab[token], "content": token, **flags} for token in special]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": pattern is None}
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    model = {"type": "BPE", "vocab": vocab, "merges": [" ".join(pair) for pair in merges], "ignore_merges": False}
    model |= {"dropout": None, "unk_token": None, "fuse_unk": False, "byte_fallback": False}
    model |= {"continuing_subword_prefix": None, "end_of_word_suffix": None}
    before = level if pattern is None else {"type": "Sequence", "pretokenizers": [split, level]}
    document = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None}
    document |= {"pre_tokenizer": before, "post_processor": None, "decoder": level, "model": model}
    return json.dumps(document)


def load(**options):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "tokenizer.json")
        file.write_text(tokenizer_json(**options), "utf-8")
        return gigatoken.Tokenizer(str(file))


def train(text, vocab_size, special=(), **options):
    return gigatoken.train_bpe(text.encode(), vocab_size, list(special), separator=b"\xff", **options)


def first_id():
    vocab, _ = train("ab", 257, tie_breaking="huggingface")
    return vocab[0]


check("TRAIN-END-1", lambda: train("abc\nabc", 260, ["<|e|>"])[1], [(b"a", b"b"), (b"ab", b"c")])
low = "low\n" * 4
check("TRAIN-SPECIAL-1", lambda: list(train(low, 259, ["low"])[0].values()).count(b"low"), 1)
check("TRAIN-IDS-2", first_id, b"!")
check("TRAIN-SIZE-3", lambda: len(train("ab", 255)[0]), "an error")
check("TRAIN-SIZE-4", lambda: len(train("abcabc", 259, ["<|e|>", "<|e|>"])[1]), 2)
check("SPECIAL-DECODE-1", lambda: bytes(load(special=["\xe9|"]).decode([256])).decode("utf-8", "replace"), "\xe9|")
sys.exit(any(failed))
