"""Prints the results of a run."""
