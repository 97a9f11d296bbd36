"""A run as a file, out and in."""
