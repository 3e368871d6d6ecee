"""Files that other tools read: CS336, GPT-2, Hugging Face, tiktoken."""
