"""Does the work of the plain modules over NumPy arrays, for large texts and many merges (see `dispatch`)."""
