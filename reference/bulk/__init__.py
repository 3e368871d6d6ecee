"""The same results as the plain modules, over arrays of NumPy: for much text, and many merges."""
