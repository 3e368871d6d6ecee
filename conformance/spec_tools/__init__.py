"""Tools for the specification: regenerate, lint, list, explain, export, and the probes of conventions."""
