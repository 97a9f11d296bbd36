"""Pure functions from arrays and token lists to Plotly figures: no torch, no Streamlit.

A function named `…_spec` returns the same figure as plain values. The linked view draws these values, so
Plotly's Python side need not check each of them again.

In a notebook, without a network:

    import plotly.io; plotly.io.renderers.default = "notebook"
    from figures import heatmap
    from transformer import load_translator
    view = load_translator("assets/models/en-de").translate("The house is old.").head("cross", 2, 3)
    heatmap(view)
"""

from __future__ import annotations

from figures.base.bars import next_token, next_token_spec, row_bars, row_bars_spec
from figures.base.style import to_json
from figures.maps.heatmap import heatmap, heatmap_spec
from figures.maps.lines import lines
from figures.maps.overview import Tile, overview, overview_spec
from figures.maps.pooled import pooled_heatmap, pooled_spec
from figures.maps.strongest import strongest

__all__ = [
    "Tile",
    "heatmap",
    "heatmap_spec",
    "lines",
    "next_token",
    "next_token_spec",
    "overview",
    "overview_spec",
    "pooled_heatmap",
    "pooled_spec",
    "row_bars",
    "row_bars_spec",
    "strongest",
    "to_json",
]
