"""Heads that take over when another is ablated, over many sentences."""
