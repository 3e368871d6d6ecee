"""Show the findings in wordchipper. Run it without a network, with `pip install wordchipper==0.9.2`."""

import os
import tempfile

import wordchipper
from shared import check, finish


def encode():
    """Encode with an empty cache, so that the table must be downloaded; the second call reads what the first left."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WORDCHIPPER_CACHE_DIR"] = folder
        return list(wordchipper.Tokenizer.from_pretrained("r50k_base").encode("hello"))


check("MERGE-GPT2-1", encode, "an error")
finish()
