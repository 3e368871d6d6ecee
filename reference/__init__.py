"""The reference implementation: a byte-level BPE trainer and encoder, readable and fast.

To understand the code, read the modules in this order:

1. `textbook` is the oracle, and the shortest description of the algorithm. The modules below do not use it.
2. `tokenizer` defines `Tokenizer`, whose methods call everything below.
3. Training: `counting` counts pre-tokens (`special_tokens`, `patterns`), and `trainer` learns merges from the counts.
   `conventions` has the rules that trainers can choose between.
4. Encoding: `text_encoder` finds special tokens, splits, and calls `encoder`, which merges one pre-token (`merging`).
   `streaming` cuts a stream into parts.
5. Large inputs: `fences` finds positions at which a text can be cut, `chunks` cuts files there, and `workers` runs jobs
   in other processes. `file_encoding` and `corpus_encoding` use these for one file and for many.
6. `dispatch` decides when arrays replace the plain modules. In `bulk`, read `pieces` first, then `encoding` and
   `learning`. `arrays` has their tools.
7. `formats` reads and writes the files of other tools. `superbpe` trains across word boundaries.
"""

from __future__ import annotations

from .tokenizer import Tokenizer, conventional

__all__ = ["Tokenizer", "conventional"]
