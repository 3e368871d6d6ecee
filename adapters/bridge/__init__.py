"""The JSON-lines protocol between the suite and a tokenizer in another process."""
