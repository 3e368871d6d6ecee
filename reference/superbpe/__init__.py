"""SuperBPE: training that continues across word boundaries, and its textbook version."""
