"""Texts continued by a language model: from a prompt to a Generation."""
