"""The implementation under test: its capabilities, a proxy that returns exact builtins, and its limits."""
