"""Show the findings in quicktok. Run it with `pip install quicktok-v1==0.4.0`, and with tokenizers, which it asks."""

import contextlib
import io
import tempfile
from pathlib import Path

import quicktok
from shared import check, finish, tokenizer_json

QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def load(content=None, **options):
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        file = Path(folder, "tokenizer.json")
        file.write_text(content or tokenizer_json(pattern=QWEN2, **options), "utf-8")
        quicktok.import_tokenizer(str(file), "imported", folder)
        return quicktok.Tokenizer("imported", folder)


def encode(text, **options):
    return list(load(**options).encode(text, allowed_special="all"))


check("SPLIT-QWEN2-1", lambda: encode("'\u017fb", merges=[("\xbf", "b")]), [39, 197, 191, 98])
check("MERGE-WHOLE-1", lambda: encode("xabc", extra=["abc"]), [120, 97, 98, 99])
check("SPECIAL-ORDER-1", lambda: encode("<|a|>", special=["<|a", "<|a|>"]), [257])
check("SPECIAL-DECODE-1", lambda: load(special=["\xe9|"]).decode([256]), "\xe9|")
check("MERGE-ID-1", lambda: encode("ab", merges=[("a", "b")], gap=500), [756])
check("SPECIAL-LITERAL-1", lambda: encode("(x)", special=["(x)"]), [256])
plain = tokenizer_json(pattern=QWEN2, special=["<a>"], normalizer="NFC")
normalized = plain.replace('"normalized": false', '"normalized": true')  # NFC makes one character of > and U+0338
check("PIPELINE-ADDED-2", lambda: encode("<a>\u0338", content=normalized), [60, 97, 226, 137, 175])
finish()
