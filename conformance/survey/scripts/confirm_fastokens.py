"""Show the findings in fastokens. Run it with `pip install fastokens==0.3.5`."""

import base64
import json
import sys
import tempfile
from pathlib import Path

import fastokens

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
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


def load(document=None, **options):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "tokenizer.json")
        file.write_text(document or tokenizer_json(**options), "utf-8")
        return fastokens.Tokenizer.from_file(str(file))


def from_ranks(learned=()):
    tokens = [bytes([byte]) for byte in range(256)] + list(learned)
    lines = [f"{base64.b64encode(token).decode()} {number}" for number, token in enumerate(tokens)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "ranks.tiktoken")
        file.write_text("\n".join(lines), "utf-8")
        return fastokens.Tokenizer.from_tiktoken(str(file), GPT2, {})


def gap():
    document = json.loads(tokenizer_json(merges=[("a", "b")]))
    document["model"]["vocab"]["ab"] = 300
    return list(load(json.dumps(document)).encode("ab").ids)


long_s = [("\xbf", "a")]
check("MERGE-ID-1", gap, [300])
check("SPLIT-LLAMA3-1", lambda: list(load(merges=long_s, pattern=LLAMA3).encode("'\u017fa").ids), [39, 197, 191, 97])
check("DECODE-UNKNOWN-1", lambda: load().decode([97, 999]), "an error")
check("SPECIAL-DECODE-1", lambda: load(special=["\xe9|"]).decode([256]), "\xe9|")
check("MERGE-WHOLE-1", lambda: list(from_ranks([b"abc"]).encode("abc").ids), [256])
check("SPLIT-SPACE-3", lambda: len(from_ranks([b" \xe1"]).encode(" \u180eb").ids), 4)
sys.exit(any(failed))
