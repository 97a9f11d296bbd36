"""Translators whose encoder began as a language model."""
