"""Sections about what a language model has learned; they read no text of the visitor's, or two sentences."""
