"""Soft and hard attention on the same toy task."""
