"""Code that the scripts share. It needs only Python: copy it together with a script."""

import json
import multiprocessing
import sys
import tempfile
from pathlib import Path

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SUFFIX = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]*[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]+{SUFFIX}"
    rf"|[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]+[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*{SUFFIX}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
OTHERS = [byte for byte in range(256) if byte not in PRINTABLE]
SPELLED = {byte: chr(byte) for byte in PRINTABLE} | {byte: chr(256 + place) for place, byte in enumerate(OTHERS)}
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


def finish():
    """Exit with 1 if an answer differed."""
    sys.exit(any(failed))


def tokenizer_json(merges=(), special=(), without="", pattern=None, extra=(), gap=0, normalizer=None):
    """Return a byte-level tokenizer.json as text; merges are in its spelling."""
    vocab = {token: byte for byte, token in SPELLED.items() if token not in without}
    for token in ["".join(pair) for pair in merges] + [*extra]:
        vocab[token] = max(vocab.values()) + 1 + gap
    for token in special:
        vocab.setdefault(token, max(vocab.values()) + 1 + gap)
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    added = [{"id": vocab[token], "content": token, **flags} for token in special]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": pattern is None}
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    model = {"type": "BPE", "vocab": vocab, "merges": [" ".join(pair) for pair in merges], "ignore_merges": False}
    model |= {"dropout": None, "unk_token": None, "fuse_unk": False, "byte_fallback": False}
    model |= {"continuing_subword_prefix": None, "end_of_word_suffix": None}
    before = level if pattern is None else {"type": "Sequence", "pretokenizers": [split, level]}
    document = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added}
    document["normalizer"] = normalizer and {"type": normalizer}
    document |= {"pre_tokenizer": before, "post_processor": None, "decoder": level, "model": model}
    return json.dumps(document)


def split(regex, behavior="Isolated", invert=False):
    """Return a step of `pipeline_json`."""
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert}


def level(prefix=False, own=True):
    """Return the step ByteLevel, with its own split or without it."""
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": False, "use_regex": own}


def pipeline_json(*steps, forms=(), added=(), flags=None, whole=False, **options):
    """Return a tokenizer.json with these steps, normal forms and added tokens, of which the last has the flags."""
    document = json.loads(tokenizer_json(special=added, **options))
    document["added_tokens"][-1:] = [{**token, **(flags or {})} for token in document["added_tokens"][-1:]]
    document["normalizer"] = {"type": "Sequence", "normalizers": [{"type": form} for form in forms]} if forms else None
    document["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps} if steps[1:] else [*steps, level()][0]
    document["model"]["ignore_merges"] = whole
    return json.dumps(document)


def begun_json(first, second):
    """Return a tokenizer.json with two added tokens, of which the first takes the white space after it."""
    document = json.loads(tokenizer_json(special=[first, second]))
    document["added_tokens"][0]["rstrip"] = True
    return json.dumps(document)


def loaded(load, text):
    """Return what `load` makes of the path of a tokenizer.json with this text."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "tokenizer.json")
        file.write_text(text, "utf-8")
        return load(str(file))


def exit_status(call):
    """Return the exit status of a process of its own that makes the call, which can end it."""
    process = multiprocessing.get_context("fork").Process(target=call)
    process.start()
    process.join()
    return process.exitcode
