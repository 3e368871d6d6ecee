"""One pytest run: loading the adapter, selection, items, known failures, exit status."""
