"""The conformance suite for byte-level BPE tokenizers.

Importing this package imports nothing else: pytest loads it in every run, even in those that never name the suite.
"""

__version__ = "0.1.0"
