"""Show the findings in tokie. Run it with `pip install tokie==0.1.4`."""

import json
import multiprocessing
import sys
import tempfile
from pathlib import Path

import tokie

CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
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
        return tokie.Tokenizer.from_json(str(file))


def encode(text, **options):
    return list(load(**options).encode(text, add_special_tokens=False).ids)


def renumbered(text, ids, merges):
    """Encode with other ids for the results of the merges."""
    document = json.loads(tokenizer_json(merges=merges))
    document["model"]["vocab"] |= {"".join(pair): index for pair, index in zip(merges, ids, strict=True)}
    made = load(json.dumps(document))
    return list(made.encode(text, add_special_tokens=False).ids)


def ended(powers):
    """Return the exit status of a process of its own that loads a table of 'a', 'aa', 'aaaa' and so on."""
    merges = [("a" * 2**power, "a" * 2**power) for power in range(powers)]
    process = multiprocessing.get_context("fork").Process(target=load, kwargs={"merges": merges})
    process.start()
    process.join()
    return process.exitcode


pairs = [("b", "c"), ("a", "b"), ("ab", "c")]
check("SPLIT-SPACE-2", lambda: encode("\ta", merges=[("\u0109", "a")]), [9, 97])
check("SPLIT-CONTRACTION-2", lambda: encode("x'T", merges=[("'", "T")]), [120, 39, 84])
check("SPLIT-UNICODE-1", lambda: encode("V\u2167", merges=[("V", "\xe2")]), [86, 226, 133, 167])
check("SPLIT-NAME-1", lambda: encode("a\n ", merges=[("\u010a", "\u0120")], pattern=CL100K), [97, 256])
check("SPLIT-NONE-1", lambda: encode("a b", merges=[("a", "\u0120"), ("a\u0120", "b")], pattern=r"[\s\S]+"), [257])
check("MERGE-RANK-1", lambda: renumbered("abc", [257, 256], [("b", "c"), ("a", "b")]), [97, 257])
check("MERGE-ID-1", lambda: renumbered("ab", [100000], [("a", "b")]), [100000])
check("LAW-LONG-2", lambda: {*encode("ab" * 5001, merges=[("a", "b")])}, {256})  # on two processors and more
check("LAW-LONG-1", lambda: ended(15), 0)
check("ERROR-TABLE-1", lambda: encode("az", without="z"), "an error")
check("DECODE-UTF8-1", lambda: load().decode([128]), "\ufffd")
check("SPECIAL-SCAN-1", lambda: encode("x<|a|>z", special=["<|a|>", "x<|a|>y"]), [120, 256, 122])
check("DECODE-UNKNOWN-1", lambda: load().decode([97, 999]), "an error")
check("MERGE-ORDER-1", lambda: encode("abc", merges=pairs), [97, 256])
check("SPECIAL-DECODE-1", lambda: load(special=["\xe9|"]).decode([256]), "\xe9|")
sys.exit(any(failed))
