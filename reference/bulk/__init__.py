"""The same results as the plain modules, over arrays of NumPy: for large texts and many merges (see `dispatch`)."""
