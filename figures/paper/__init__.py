"""Figures for a paper: true vector PDF and SVG, and PNG. matplotlib is imported only when one is drawn."""
