"""Implementations × clauses: runs the suite over several implementations and puts their reports on one page.

`implementations.yaml` lists those that the project judges itself, `findings.yaml` what is wrong or different in them
and why.
"""
