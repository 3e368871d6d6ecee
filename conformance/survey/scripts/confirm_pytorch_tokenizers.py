"""Show the findings in pytorch-tokenizers. Run it with `pip install pytorch-tokenizers==1.5.0`."""

import json
import multiprocessing
import sys
import tempfile
from pathlib import Path

from pytorch_tokenizers import CppHFTokenizer

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
        made = CppHFTokenizer()
        made.load(str(file))
        return made


def long_word():
    """Call it in a process of its own, which ends with a signal."""
    process = multiprocessing.get_context("fork").Process(target=lambda: load().encode("a" * 70_000))
    process.start()
    process.join()
    return process.exitcode


pairs = [("b", "c"), ("a", "b"), ("ab", "c")]
check("MERGE-ORDER-1", lambda: list(load(merges=pairs).encode("abc")), [97, 256])
check("SPECIAL-DECODE-1", lambda: load(special=["\xe9|"]).decode_batch([256]), "\xe9|")
check("DECODE-UTF8-1", lambda: load().decode_batch([128]), "\ufffd")
check("ERROR-TABLE-1", lambda: list(load(without="z").encode("az")), "an error")
check("LAW-LONG-2", long_word, 0)
sys.exit(any(failed))
