"""Faults on purpose: what is tried, and how each fault is brought about."""
