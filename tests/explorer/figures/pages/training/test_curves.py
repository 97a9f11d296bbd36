from __future__ import annotations

from explorer.figures.maps.export import printed
from explorer.figures.pages.training.curves import Curve, curves

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
