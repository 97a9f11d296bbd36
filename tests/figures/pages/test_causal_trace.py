"""A panel of a causal trace: each cell, its colour and its hover text are those of its place and token."""

from __future__ import annotations

import numpy as np
import pytest

from figures.pages.causal_trace import TracePanel, trace_end, trace_map

SHARES = np.array([[0.0, 1.0, -0.2], [0.25, 0.5, 0.75]])


def panel(shares: np.ndarray = SHARES, **more: object) -> TracePanel:
    rows = [f"layer {i}" for i in range(len(shares))]
    tokens = ["▁a", "▁b", "</s>"]
    notes = [[f"{row} {token}" for token in tokens] for row in rows]
    return TracePanel("decoder", rows, tokens, shares, notes, **more)


def test_cells_hold_the_shares_of_their_row_and_token():
    figure = trace_map(panel(), 1.0)
    cells, _ = figure.data
    assert np.array(cells.z) == pytest.approx(SHARES)
    assert list(figure.layout.xaxis.ticktext) == ["a", "b", "&lt;/s&gt;"]
    assert list(figure.layout.yaxis.ticktext) == ["layer 0", "layer 1"]
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1], "the first row is at the top"


def test_a_click_names_the_panel_the_row_and_the_token_and_its_hover_text_belongs_to_it():
    _, targets = trace_map(panel(), 1.0).data
    for x, y, place, note in zip(targets.x, targets.y, targets.customdata, targets.hovertext, strict=True):
        assert tuple(place) == ("decoder", y, x)
        token = ["▁a", "▁b", "&lt;/s&gt;"][x]
        assert note == f"layer {y} {token}"


@pytest.mark.parametrize(("most", "end"), [(0.4, 1.0), (1.0, 1.0), (1.05, 1.0), (1.52, 1.6)])
def test_panels_share_one_scale_which_is_centred_on_zero(most: float, end: float):
    panels = [panel(), panel(np.full((2, 3), -most))]
    assert trace_end(panels) == pytest.approx(end)
    cells, _ = trace_map(panels[0], trace_end(panels)).data
    assert (cells.zmin, cells.zmax) == (-trace_end(panels), trace_end(panels))


def test_the_scale_is_drawn_once_if_asked():
    with_scale, without = (trace_map(panel(), 1.0, legend) for legend in (True, False))
    assert with_scale.data[0].showscale
    assert list(with_scale.data[0].colorbar.ticktext) == ["−100\u00a0%", "0\u00a0%", "100\u00a0% comes back"]
    assert not without.data[0].showscale
    assert with_scale.layout.height > without.layout.height


def test_a_line_parts_the_blocks_of_rows():
    shapes = trace_map(panel(parted=[1]), 1.0).layout.shapes
    assert [each.y0 for each in shapes if each.type == "line"] == [0.5]
