"""Show the findings in riptoken. Run it with `pip install riptoken==0.2.4`."""

import subprocess
import sys

import riptoken
from shared import GPT2, check, finish

BYTES = {bytes([byte]): byte for byte in range(256)}


def encode(text, ranks=None, special=()):
    numbered = {token: 300 + number for number, token in enumerate(special)}
    return list(riptoken.CoreBPE({**BYTES, **(ranks or {})}, numbered, GPT2).encode(text, set(special)))


def possessive():
    return list(riptoken.CoreBPE({**BYTES, b"ab": 256}, {}, r"a?+ab|[\s\S]").encode("ab", set()))


def empty():
    """Call encode in a process of its own: it does not return."""
    code = "import riptoken; riptoken.CoreBPE({bytes([b]): b for b in range(256)}, {'': 300}, '.+').encode('a', {''})"
    return subprocess.run([sys.executable, "-c", code], timeout=10, check=False).returncode


tokens = [f"<|{'a' * length}" for length in range(1, 9)]
check("MERGE-LONG-1", lambda: encode("x" * 501, {b"xx": 256}), [256] * 250 + [120])
check("SPLIT-DEFAULT-1", possessive, [97, 98])
check("SPECIAL-SCAN-1", lambda: encode(tokens[-1], special=tokens), [307])
check("SPECIAL-EMPTY-1", empty, 0)
without_z = {token: index for token, index in BYTES.items() if token != b"z"}
check("ERROR-TABLE-1", lambda: list(riptoken.CoreBPE(without_z, {}, GPT2).encode("az", set())), "an error")
check("DECODE-UNKNOWN-1", lambda: riptoken.CoreBPE(BYTES, {}, GPT2).decode_bytes([97, 999]), "an error")
finish()
