"""Runs the suite on several implementations, and puts their reports on one page: implementations × clauses.

`implementations.yaml` lists the implementations that the project tests. `findings.yaml` lists their differences and the
reasons.
"""
