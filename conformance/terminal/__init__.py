"""Everything that a run prints for people."""
