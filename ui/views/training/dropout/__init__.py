"""Dropout: the same sentence several times, and what flickers."""
