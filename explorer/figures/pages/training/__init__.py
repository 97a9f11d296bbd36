"""Figures of the page Training."""
