"""Pickers, export, plain text."""
