"""One run of the suite under pytest: what is selected, the items, the failures told, the summary."""
