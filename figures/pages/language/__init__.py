"""Figures of the page Language model: what losing heads costs, words in space."""
