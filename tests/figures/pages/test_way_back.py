"""Columns of places: every line runs between its two places, as thick as its number says."""

from __future__ import annotations

import numpy as np

from figures.pages.way_back import Line, Place, way_graph

PLACES = [Place(0, "logit", 3.0), Place(1, "a", 4.0), Place(1, "<b>", -1.0), Place(2, "x", 4.0)]
LINES = [Line(0, 1, 4.0), Line(0, 2, -1.0), Line(1, 3, 4.0)]


def test_lines_join_their_places_and_are_as_thick_as_their_numbers() -> None:
    figure = way_graph(("right", "middle", "left"), PLACES, LINES)
    *lines, middles, dots = figure.data
    spots = list(zip(dots.x.tolist(), dots.y.tolist(), strict=True))
    assert [x for x, _ in spots] == [2, 1, 1, 0]
    thick = max(lines, key=lambda each: each.line.width)
    thin = min(lines, key=lambda each: each.line.width)
    assert thick.line.width == 4 * thin.line.width
    ends = np.isnan(np.append(thick.x, np.nan)).nonzero()[0]
    pieces = np.split(np.stack([thick.x, thick.y], 1), ends)
    starts = {
        tuple(np.round(piece[~np.isnan(piece[:, 0])][0].tolist(), 4)) for piece in pieces if len(piece) > 1
    }
    assert starts == {tuple(np.round(spots[line.start], 4)) for line in LINES if line.value == 4}
    assert list(middles.hovertext) == [
        "a → logit: +4.000 nats",
        "&lt;b&gt; → logit: −1.000 nats",
        "x → a: +4.000 nats",
    ]
    assert "&lt;b&gt; −1.00" in dots.text
    assert figure.layout.xaxis.ticktext == ("left", "middle", "right")
