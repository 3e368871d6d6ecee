"""Show the findings in gigatoken. Run it with `pip install gigatoken==0.10.0`."""

import gigatoken
from shared import check, finish, level, loaded, pipeline_json, split, tokenizer_json


def load(**options):
    return loaded(gigatoken.Tokenizer, tokenizer_json(**options))


def piped(text, *steps, **options):
    return [int(index) for index in loaded(gigatoken.Tokenizer, pipeline_json(*steps, **options)).encode(text)]


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
check("PIPELINE-NORM-1", lambda: list(load(normalizer="NFKC").encode("\xb2")), [50])
check("PIPELINE-ORDER-1", lambda: piped("abcd", added=["bc", "abcd"], flags={"normalized": True}), [97, 256, 100])
check("PIPELINE-WORD-1", lambda: piped("xab", added=["ab"], flags={"single_word": True}), [120, 97, 98])
check("PIPELINE-LOAD-1", lambda: piped("a b", level(own=False), merges=[("a", "\u0120")]), [256, 98])
check("PIPELINE-SPLIT-2", lambda: piped("a-b", split("-"), level(own=False)), [97, 45, 98])
finish()
