"""Show the findings in toktokenizer. Run it with `pip install toktokenizer==0.2.0`."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from shared import check, finish
from toktokenizer import BPETokenizer


def load(merges):
    """Return a tokenizer with these merges, which are pairs of ids."""
    made = BPETokenizer()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "table.json")
        file.write_text(json.dumps({256 + rank: pair for rank, pair in enumerate(merges)}), "utf-8")
        made.load_encoder(str(file))
    return made


def trained(text, merges):
    made = BPETokenizer()
    made.train(text, merges)
    return made


def run():
    """Call encode in a process of its own: it does not return."""
    code = "from toktokenizer import BPETokenizer; t = BPETokenizer(); t.train('aa', 1); t.encode('aaa')"
    return subprocess.run([sys.executable, "-c", code], timeout=10, check=False).returncode


def euro():
    made = trained("ab ab abc abab", 3)
    return made.decode(made.encode("\u20ac"))


def special():
    made = BPETokenizer()
    made.add_special_tokens(["<|a|>", "<|b|>"])
    return min(made.special_tokens_map.values()) >= 256


def shared():
    for special in ("xx", "xxy"):
        made = BPETokenizer()
        made.add_special_tokens([special])
    return tuple(made.encode("axxb"))


check("MERGE-LEFT-1", run, 0)
check("MERGE-ORDER-1", lambda: load([(97, 98), (256, 99), (99, 100)]).encode("abcd"), [257, 100])
check("TRAIN-IDS-1", euro, "\u20ac")
check("LAW-REPLAY-1", lambda: len({str(trained("ab cd ef gh", 1).encoder) for _ in range(20)}), 1)
check("TRAIN-END-1", lambda: len(trained("aaaa", 3).encoder), 2)
check("DECODE-UTF8-1", lambda: load([]).decode([0xE2]), "\ufffd")
check("DECODE-UNKNOWN-1", lambda: load([]).decode([300]), "an error")
check("SPECIAL-ID-1", special, True)
check("LAW-WAYS-1", lambda: {shared() for _ in range(20)}, {(97, 120, 120, 98)})
finish()
