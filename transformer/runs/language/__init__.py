"""Prompt in, continuation out: generating with a language model."""
