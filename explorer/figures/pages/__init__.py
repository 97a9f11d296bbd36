"""Figures that belong to a single page."""
