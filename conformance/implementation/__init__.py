"""The implementation under test: what it offers, a proxy that returns exact builtins, and the limits it runs in."""
