"""bpe-from-scratch as an adapter: a pure Python tokenizer with GPT-2's pattern and an incremental trainer."""

from __future__ import annotations

import json
from typing import Any

from . import refuse_special_tokens, require, temporary_file
from .own_ids import OwnIds, OwnIdsTokenizer

bpe_from_scratch = require("bpe_from_scratch", "bpe-from-scratch")


class Tokenizer(OwnIdsTokenizer):
    """`bpe_from_scratch.ByteLevelBPE`, loaded from a file in its own format. It does not support special tokens."""

    engine = bpe_from_scratch.ByteLevelBPE
    version = bpe_from_scratch.__version__
    takes_pattern = False

    @classmethod
    def filled(cls, table: OwnIds, pattern: str) -> Any:
        refuse_special_tokens(list(table.special))
        document = {
            "merges": {f"{left},{right}": index for (left, right), index in table.pairs.items()},
            "vocab": {str(index): list(token) for index, token in table.tokens.items()},
        }
        tokenizer = cls.engine()
        with temporary_file("table.json", json.dumps(document).encode()) as path:
            tokenizer.load(path)
        return tokenizer
