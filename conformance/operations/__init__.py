"""The operations of a tokenizer, one class each, and what golden cases expect of them."""

from __future__ import annotations

from .batch import Batch
from .decode import Decode, DecodeBytes, Decoding
from .detokenize import Detokenize, Waiting
from .encode import Construct, Encode, EncodeAllowed, Encoding, Entries
from .expected import Expected, Lazy, Merges, OwnTable, StoredIds
from .files import Load, OnlyLoad, Save
from .offsets import EncodeWithOffsets
from .operation import LOOKUP_KEYS, Call, Changes, Directory, ManyCalls, Narrowed, Operation, Question
from .setting import Conventions, Setting, expression, oracle, pieces, token_of
from .stream import Laziness, Stream, StreamCutEverywhere
from .train import TEXT_KEYS, TRAINING_KEYS, Train, conventions_of, tie_clause, training_key

IN_YAML: tuple[type[Operation], ...] = (Train, Encode, EncodeAllowed, Construct, Decode, Stream, Batch, Save, Load)
IN_YAML += (Detokenize, EncodeWithOffsets)
"""The operations of golden cases."""
_EVERY: tuple[type[Operation], ...] = (*IN_YAML, DecodeBytes, Entries)
OPERATIONS = {kind.name: kind for kind in _EVERY}  # name of an operation → its class
CLASSES = (*dict.fromkeys(kind.conformance_class for kind in IN_YAML), "pipeline")
"""The conformance classes, in the order of verdicts."""
