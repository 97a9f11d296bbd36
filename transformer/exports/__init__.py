"""Runs as files: saving and opening them."""
