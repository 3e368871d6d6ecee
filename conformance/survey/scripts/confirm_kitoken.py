"""Show the findings in kitoken. Run it with `pip install kitoken==0.11.1`."""

import json
import sys
import tempfile
from pathlib import Path

import kitoken

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


def encode(text, **options):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "tokenizer.json")
        file.write_text(tokenizer_json(**options), "utf-8")
        return list(kitoken.Kitoken.from_tokenizers_file(str(file)).encode(text, True))


pairs = [("b", "c"), ("a", "b"), ("ab", "c")]
check("SPLIT-SPACE-2", lambda: encode("\na", merges=[("\u010a", "a")]), [10, 97])
check("SPECIAL-SCAN-1", lambda: encode("<|e|><|e|>", special=["<|e|>", "<|e|><|e|>"]), [257])
check("ERROR-TABLE-1", lambda: encode("az", without="z"), "an error")
check("SPECIAL-EMPTY-1", lambda: encode("<|e|>abc", special=["<|e|>", ""]), [256, 97, 98, 99])
check("MERGE-LOOKUP-1", lambda: encode("xabc", merges=pairs), [120, 97, 256])
sys.exit(any(failed))
