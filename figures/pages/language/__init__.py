"""Figures of the page Language model: what losing heads costs, agreement, words in space."""
