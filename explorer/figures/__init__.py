"""Pure functions from arrays and token lists to Plotly figures: no torch, no Streamlit.

A function named `…_spec` returns the same figure as plain values. The linked view draws these
values, so Plotly's Python side need not check each of them again.

In a notebook, without a network:

    import plotly.io; plotly.io.renderers.default = "notebook"
    from explorer.figures import heatmap
    from transformer import load_translator
    view = load_translator("assets/models/en-de").translate("The house is old.").head("cross", 2, 3)
    heatmap(view)
"""

from explorer.figures.base.bars import next_token, row_bars_spec, strongest
from explorer.figures.base.style import to_json
from explorer.figures.maps.heatmap import heatmap, heatmap_spec
from explorer.figures.maps.lines import lines
from explorer.figures.maps.overview import Tile, overview_spec, pooled_spec

__all__ = [
    "Tile",
    "heatmap",
    "heatmap_spec",
    "lines",
    "next_token",
    "overview_spec",
    "pooled_spec",
    "row_bars_spec",
    "strongest",
    "to_json",
]
