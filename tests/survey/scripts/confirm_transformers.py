"""Show the findings in transformers' GPT2Tokenizer. Run it with `pip install transformers==4.57.6`."""

import json
import tempfile
from pathlib import Path

from shared import check, finish
from transformers.models.gpt2.tokenization_gpt2 import GPT2Tokenizer, bytes_to_unicode


def load(merges=(), special=(), extra=(), version=True, gap=0, without="", end="\n"):
    vocab = {token: byte for byte, token in bytes_to_unicode().items()}
    for token in ["".join(pair) for pair in merges] + list(extra):
        vocab[token] = len(vocab) + gap
    vocab = {token: index for token, index in vocab.items() if token != without}
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("vocab.json", "merges.txt")]
        files[0].write_text(json.dumps(vocab), "utf-8")
        lines = (["#version: 0.2"] if version else []) + [" ".join(pair) for pair in merges]
        files[1].write_text("\n".join(lines) + end, "utf-8")
        options = dict.fromkeys(["unk_token", "bos_token", "eos_token", "pad_token"])
        return GPT2Tokenizer(*map(str, files), additional_special_tokens=list(special), **options)


def special(token, extra=()):
    made = load(special=[token], extra=extra)
    return made.decode(made.encode(token), clean_up_tokenization_spaces=False)


def absent():
    made = load([("a", "b"), ("c", "d")], ["<|e|>"], gap=1)
    return made.convert_tokens_to_ids("<|e|>") != made.convert_tokens_to_ids("cd")


def saved():
    made = load(special=["<a>", "<b>"])
    options = dict.fromkeys(["unk_token", "bos_token", "eos_token", "pad_token"])
    with tempfile.TemporaryDirectory() as folder:
        files = made.save_vocabulary(folder)
        again = GPT2Tokenizer(*files, additional_special_tokens=["<b>", "<a>"], **options)
        in_file = "<a>" in json.loads(Path(files[0]).read_text("utf-8"))
    return in_file, again.encode("<a>") == made.encode("<a>")


check("SPECIAL-DECODE-1", lambda: special("\xe9|", ["\xe9|"]), "\xe9|")
check("SPECIAL-DECODE-1", lambda: special("<\xe9 \u20ac>", ["<\xe9 \u20ac>"]), "<\xe9 \u20ac>")
check("SPECIAL-ABSENT-2", absent, True)
check("ERROR-TABLE-1", lambda: load(without="z").encode("az"), "an error")
check("FILE-SAVE-1", saved, (True, True))
check("FILE-VERSION-2", lambda: load([("a", "b"), ("c", "d")], version=False).tokenize("abcd"), ["ab", "cd"])
check("FILE-LINES-2", lambda: load([("a", "b")], end="").tokenize("ab"), ["ab"])
finish()
