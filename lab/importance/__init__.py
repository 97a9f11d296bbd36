"""Importance of each head for a model's loss."""
