"""The error of a command."""

from __future__ import annotations


class CommandError(Exception):
    """A command cannot do what the user asked. The message is one line: what is wrong, and the fix."""
