"""The conformance suite for byte-level BPE tokenizers.

`check` runs the suite on a class, in a notebook or a script. Importing this package imports nothing else: pytest loads
it in every run, even in those that never name the suite.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .notebook import check as check

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name != "check":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .notebook import check

    return check
