"""Show the findings in bpe-qwen. Run it with `pip install bpe-qwen==0.1.5`, and with transformers, which it imports."""

import json
import tempfile
from pathlib import Path

from bpe_qwen import QwenTokenizer
from shared import check, exit_status, finish, tokenizer_json


def load(**options):
    document = json.loads(tokenizer_json(**options))
    files = {
        "vocab.json": json.dumps(document["model"]["vocab"]),
        "merges.txt": "\n".join(["#version: 0.2", *document["model"]["merges"]]),
        "tokenizer_config.json": json.dumps(
            {"added_tokens_decoder": {str(token["id"]): token for token in document["added_tokens"]}}
        ),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text, "utf-8")
        return QwenTokenizer(folder)


def encode(text, **options):
    return list(load(**options).encode(text))


late = [("bc", "d"), ("a", "bcd"), ("a", "b"), ("b", "c")]
check("BYTES-TEXT-2", lambda: encode("  "), [32, 32])
check("BYTES-TEXT-1", lambda: encode("e\u0301"), [101, 204, 129])
check("SPLIT-QWEN2-1", lambda: encode("'\u017fb", merges=[("\xbf", "b")]), [39, 197, 191, 98])
check("SPLIT-DEFAULT-1", lambda: encode("'sa", merges=[("s", "a")]), [39, 115, 97])
check("SPECIAL-SCAN-1", lambda: encode("<a><b>", special=["<a>", "<a><b>"]), [257])
check("ERROR-TABLE-1", lambda: encode("az", without="z"), "an error")
check("DECODE-UNKNOWN-1", lambda: load().decode([97, 999]), "an error")
check("SPECIAL-DECODE-1", lambda: load(extra=["xyz"]).decode([256]), "xyz")
check("MERGE-TABLE-1", lambda: exit_status(lambda: load(merges=late)), 0)
finish()
