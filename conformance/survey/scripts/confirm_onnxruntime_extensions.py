"""Show the findings in onnxruntime-extensions. Run it with `pip install onnxruntime-extensions==0.15.2`."""

import json
import multiprocessing
import sys
import tempfile
from pathlib import Path

from onnxruntime_extensions import pp_api

UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = "|".join(
    [
        rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{SUFFIX}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{SUFFIX}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
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


def tokenizer_json(merges=(), special=(), without="", pattern=None, extra=(), gap=0):
    """Return a byte-level tokenizer.json as text; merges are in its spelling."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spelled = [chr(byte) for byte in plain] + [chr(256 + number) for number in range(68)]
    bytes_ = plain + [byte for byte in range(256) if byte not in plain]
    vocab = {token: byte for token, byte in zip(spelled, bytes_, strict=True) if token not in without}
    for token in ["".join(pair) for pair in merges] + [*extra, *special]:
        vocab[token] = max(vocab.values()) + 1 + gap
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
        Path(folder, "tokenizer.json").write_text(tokenizer_json(**options), "utf-8")
        kind = "PreTrainedTokenizerFast" if "pattern" in options else "GPT2Tokenizer"
        Path(folder, "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind}), "utf-8")
        return pp_api.Tokenizer(folder, {"skip_special_tokens": False})


def encode(text, **options):
    return list(load(**options).tokenize(text))


def decode(ids, **options):
    return load(**options).detokenize(ids)[0]


def ended(**options):
    """Return the exit status of a process of its own that encodes a text."""
    process = multiprocessing.get_context("fork").Process(target=encode, args=("az",), kwargs=options)
    process.start()
    process.join()
    return process.exitcode


pairs = [("b", "c"), ("a", "b"), ("ab", "c")]
check("MERGE-ORDER-1", lambda: encode("abc", merges=pairs), [97, 256])
check("BYTES-TEXT-3", lambda: encode("a\0b"), [97, 0, 98])
check("DECODE-UTF8-1", lambda: decode([255, 255]), "\ufffd\ufffd")
check("SPECIAL-SCAN-1", lambda: encode("10003", special=["00"]), [49, 256, 48, 51])
check("SPLIT-SPACE-3", lambda: len(encode("a \x85b", merges=[("\u0120", "\xc2")])), 5)
check("SPLIT-O200K-6", lambda: encode("a;\n//", merges=[("\u010a", "/")], pattern=O200K), [97, 59, 256, 47])
check("SPLIT-CL100K-2023-1", lambda: encode("'\u017fa", merges=[("\xbf", "a")], pattern=CL100K), [39, 197, 191, 97])
check("ERROR-TABLE-1", lambda: ended(without="z"), 1)
check("DECODE-BYTES-1", lambda: ended(extra=["ab"], gap=1), 0)
check("DECODE-EMPTY-1", lambda: decode([]), "")
sys.exit(any(failed))
