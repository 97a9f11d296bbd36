"""Measures computed a second way, from what a figure receives: by plain formulas, or by running again."""
