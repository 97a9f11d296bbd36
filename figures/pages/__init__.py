"""Figures of one page each."""
