"""The ready experiments: questions, and what a model answers."""
