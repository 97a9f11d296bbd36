"""Columns of places: every line runs between its two places, as thick as its number says."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from figures.pages.way_back import Place, WayLine, way_graph, way_svg

PLACES = [Place(0, "logit", 3.0), Place(1, "a", 4.0), Place(1, "<b>", -1.0), Place(2, "x", 4.0)]
LINES = [WayLine(0, 1, 4.0), WayLine(0, 2, -1.0), WayLine(1, 3, 4.0)]


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


def test_the_picture_has_every_line_with_its_number_and_every_place_with_its_name() -> None:
    drawn = ElementTree.fromstring(way_svg(("right", "middle", "left"), PLACES, LINES))
    space = "{http://www.w3.org/2000/svg}"
    texts = [each.text for each in drawn.findall(f"{space}text")]
    assert texts == ["right", "middle", "left", "logit +3.00", "a +4.00", "<b> −1.00", "x +4.00"]
    spots = [(each.get("cx"), each.get("cy")) for each in drawn.findall(f"{space}circle")]
    wide = {}
    for path in drawn.findall(f"{space}path"):
        told = path.find(f"{space}title").text
        ends = told.split(":")[0]
        line = next(
            each for each in LINES if ends == " → ".join(PLACES[at].name for at in (each.end, each.start))
        )
        curve = path.get("d").removeprefix("M").replace("C", " ").split()
        assert tuple(curve[:2]) == spots[line.start]
        assert tuple(curve[-2:]) == spots[line.end]
        wide[line] = float(path.get("stroke-width"))
    assert wide[LINES[0]] == wide[LINES[2]] == 4 * wide[LINES[1]]
