"""Show the findings in splintr. Run it with `pip install splintr-rs==0.22.0`."""

import base64
import json
import sys
import tempfile
from pathlib import Path

import splintr

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


def from_ranks(learned=(), special=(), without=b"", pattern=GPT2):
    tokens = [bytes([byte]) for byte in range(256) if byte not in without] + list(learned)
    lines = [f"{base64.b64encode(token).decode()} {number}" for number, token in enumerate(tokens)]
    numbered = {token: 300 + number for number, token in enumerate(special)}
    return splintr.Tokenizer.from_bytes("\n".join(lines).encode(), pattern, numbered)


def from_json(**options):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "tokenizer.json")
        file.write_text(tokenizer_json(**options), "utf-8")
        return splintr.from_json(str(file))


cl100k = splintr.Tokenizer.from_pretrained("cl100k_base")
o200k = splintr.Tokenizer.from_pretrained("o200k_base")
pairs = [("b", "c"), ("a", "b"), ("ab", "c")]
long_s = from_ranks([b"\xbfa"], pattern=LLAMA3)
check("DECODE-UNKNOWN-1", lambda: from_ranks().decode_lossy([97, 99999]), "an error")
check("SPLIT-LLAMA3-1", lambda: list(long_s.encode("'\u017fa")), [39, 197, 191, 97])
check("SPLIT-O200K-3", lambda: o200k.decode_bytes(o200k.encode("a'\u017f'ScD")[-2:]), b"ScD")
check("SPECIAL-EMPTY-1", lambda: list(from_ranks(special=[""]).encode_with_special("ab")), [97, 98])
check("ERROR-TABLE-1", lambda: list(from_ranks(without=b"z").encode("az")), "an error")
check("MERGE-LOOKUP-1", lambda: list(from_json(merges=pairs).encode("xabc")), [120, 97, 256])
check("MERGE-WHOLE-1", lambda: list(from_json(merges=[("a", "b")], extra=["abc"]).encode("abc")), [257])
check("SPECIAL-DECODE-1", lambda: from_json(special=["\xe9|"]).decode_with_special([256]), "\xe9|")
check("SPECIAL-OFF-1", lambda: list(cl100k.encode("<|im_start|>")), [27, 91, 318, 5011, 91, 29])
sys.exit(any(failed))
