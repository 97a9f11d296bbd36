"""BART: a text in, another text out, such as its summary."""
