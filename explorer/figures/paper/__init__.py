"""Figures for a paper: true vector PDF and SVG, and PNG, drawn by matplotlib."""
