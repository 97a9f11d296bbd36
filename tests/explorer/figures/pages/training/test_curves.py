from __future__ import annotations

from explorer.figures.maps.export import printed
from explorer.figures.pages.training.curves import Curve, Panel, curves, panels

LINES = [
    Curve("a", [1, 2, 3], [0.1, 0.2, 0.1], "#999999"),
    Curve("<b>", [1, 3], [0.1, 0.0], "#999999", "dash"),
]


def test_a_place_can_be_marked_beside_the_lines():
    figure = curves(LINES, ("step", "rate"), 2)
    assert [each.name for each in figure.data] == ["a", "&lt;b&gt;"]
    assert figure.layout.shapes[0].x0 == 2
    assert not curves(LINES, ("step", "rate")).layout.shapes


def test_the_lines_can_be_exported():
    figure = curves(LINES, ("step", "rate"))
    assert printed(figure, ["caption", "provenance"]).layout.height > figure.layout.height


def test_every_line_is_in_its_panel_and_the_legend_names_it_once():
    line = Curve("mean", [1, 2], [3.0, 4.0], "red")
    parts = [Panel("loss", [line]), Panel("norm", [line, Curve("norm", [1], [2.0], "blue")], height=60)]
    figure = panels(parts, "step", 1.5)
    assert [(trace.yaxis, trace.showlegend) for trace in figure.data] == [
        ("y", True),
        ("y2", False),
        ("y2", False),
    ]
    upper, lower = figure.layout.yaxis.domain, figure.layout.yaxis2.domain
    assert upper[0] > lower[1]
    assert round((upper[1] - upper[0]) / (lower[1] - lower[0]), 6) == 2
    assert (upper[1], round(lower[0], 9)) == (1, 0)
    assert figure.layout.xaxis.anchor == "y2"
    assert figure.layout.shapes[0].x0 == 1.5
