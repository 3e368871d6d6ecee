"""Runs the suite over several implementations, and puts their reports on one page: implementations × clauses.

`implementations.yaml` lists those that the project tests, `findings.yaml` what differs in them, and why.
"""
