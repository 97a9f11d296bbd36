"""Text in, ``Translation`` out: one, many, or once more."""
