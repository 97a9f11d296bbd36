"""Pure functions from arrays and token lists to Plotly figures: no torch, no Streamlit."""

from __future__ import annotations

from figures.bars import next_token, row_bars
from figures.heatmap import heatmap, pooled_heatmap
from figures.lines import lines
from figures.overview import Tile, overview
from figures.strongest import strongest

__all__ = ["Tile", "heatmap", "lines", "next_token", "overview", "pooled_heatmap", "row_bars", "strongest"]
