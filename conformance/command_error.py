"""What a command cannot do, as one line for the user."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CommandError(Exception):
    """A command cannot do what it was asked. The message is one line: what is wrong, and the fix."""


def unknown(what: str, name: str, known: Iterable[str], fix: str) -> CommandError:
    """Return the error for a name that is not known, with the nearest ones that are.

    >>> str(unknown("clause", "MERGE-ODER-1", ["MERGE-ORDER-1", "BYTES-ALL-1"], "bpe-conformance list"))
    "there is no clause 'MERGE-ODER-1'; did you mean MERGE-ORDER-1?"
    """
    by_lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    near += [one for one in by_lower if name and name.lower() in one and one not in near][: 3 - len(near)]
    told = f"did you mean {' or '.join(by_lower[one] for one in near)}?" if near else f"{fix} shows what there is"
    return CommandError(f"there is no {what} {name!a}; {told}")
