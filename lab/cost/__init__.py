"""Time and memory of layers and decoding, by length."""
