"""One module for each third-party package: its tokenizer or trainer in the shape of the adapter protocol.

A module imports its package when it is loaded, and `unavailable` makes the one line that says what to install.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import AdapterUnavailable


def unavailable(package: str, error: ImportError, install: str = "") -> AdapterUnavailable:
    """Return the error to raise when `package` cannot be imported.

    Args:
        package: the name that is imported.
        error: what the import raised.
        install: what `pip install` is to be given; the name itself unless given.
    """
    help_line = f"install it: pip install {install or package}"
    if (getattr(error, "name", "") or "").partition(".")[0] == package:
        return AdapterUnavailable(f"{package} is not installed; {help_line}")
    return AdapterUnavailable(f"{package} cannot be imported: {error}; {help_line}")


def claim_no_special_tokens(special_tokens: Sequence[str]) -> None:
    """Say, where special tokens are asked for, that a package has no way to be given them.

    Raises:
        NotImplementedError: if there are any; in the suite's first trivial call it means *not claimed*.
    """
    if special_tokens:
        raise NotImplementedError("this package knows nothing of special tokens")
