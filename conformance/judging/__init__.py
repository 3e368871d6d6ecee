"""Judging: an implementation behind the protocol, golden cases, laws, and what differs, in words."""
