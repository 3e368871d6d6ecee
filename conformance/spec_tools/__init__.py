"""Tools for the spec: regenerate, lint, list, explain, export, and the probe of conventions."""
