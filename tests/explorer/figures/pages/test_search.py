from __future__ import annotations

import itertools

import numpy as np
import pytest

from explorer.figures.base import labels
from explorer.figures.maps.export import printed
from explorer.figures.pages.search import KEPT, LOST, STEPS, WON, Beside, Branch, ordered, search_tree

NAMES = {WON: "the best", KEPT: "kept", LOST: "given up"}
SMALL = (
    Branch("▁a", 0, None, 0.5, KEPT, False, "first"),
    Branch("▁b", 0, None, 1.0, WON, False, "second"),
    Branch("▁c", 0, None, 0.1, LOST, False, "<b>third</b>"),
    Branch("▁d", 1, 0, 0.4, KEPT, False, "fourth"),
    Branch("</s>", 1, 1, 1.0, WON, True, "fifth"),
)


def wide(steps: int, width: int) -> list[Branch]:
    """A tree in which every kept token has two continuations, with long tokens."""
    found: list[Branch] = []
    before: list[int | None] = [None]
    for step in range(steps):
        here = []
        for place in range(2 * width):
            here.append(len(found))
            fate = WON if not place else KEPT if place < width else LOST
            parent = before[place % len(before)]
            found.append(Branch("▁Geschwindigkeit", step, parent, 1 / (place + 1), fate, False, "x"))
        before = [*here[:width]]
    return found


def traces(figure, **wanted):
    """The traces with these attributes."""
    return [each for each in figure.data if all(getattr(each, name) == v for name, v in wanted.items())]


def targets(figure):
    (found,) = [each for each in figure.data if each.customdata is not None]
    return found


def written(figure):
    """Label, column and row of every token."""
    for trace in traces(figure, mode="markers+text"):
        yield from zip(trace.text, trace.x, trace.y, strict=True)


def test_the_best_path_is_the_straight_line_at_the_top():
    rows = {x: y for text, x, y in written(search_tree(SMALL, NAMES)) if "<b>" in text}
    assert rows == {1: 0, 2: 0}


def test_a_line_is_as_thick_as_its_share():
    figure = search_tree(SMALL, NAMES)
    lines = [each for each in traces(figure, mode="lines", hoverinfo="skip") if len(each.x) > 1]
    widths = sorted(each.line.width for each in lines)
    assert widths == [2, 4, 5, 9]


def test_a_click_on_a_token_names_its_branch_and_hover_texts_are_escaped():
    found = targets(search_tree(SMALL, NAMES))
    assert set(found.customdata) == set(range(len(SMALL)))
    at = list(found.customdata).index(2)
    assert found.hovertext[at] == labels.escape("<b>third</b>")


def test_no_two_lines_of_the_tree_cross():
    branches = wide(6, 4)
    rows = [{place: row for row, place in enumerate(column)} for column in ordered(branches)]
    for before, after in itertools.pairwise(rows):
        parents = [before[branches[place].parent] for place in after]
        assert parents == sorted(parents)


@pytest.mark.parametrize("width", [4, 8])
def test_labels_do_not_overlap_to_a_beam_of_eight_and_forty_steps(width: int):
    figure = search_tree(wide(STEPS, width), NAMES)
    pitch = (figure.layout.width - 16) / (STEPS + 1)
    for text, *_ in written(figure):
        assert labels.width(text.removeprefix("<b>").removesuffix("</b>")) * 11 <= pitch - 10
    rows = (figure.layout.height - 58) / (2 * width)
    assert rows >= 22
    spots = [(x, y) for _, x, y in written(figure)]
    assert len(set(spots)) == len(spots)
    assert len(figure.to_json()) < 250_000


def test_a_longer_tree_is_shown_in_a_window():
    figure = search_tree(wide(STEPS + 15, 2), NAMES, first=10)
    assert figure.layout.xaxis.ticktext[0] == "11"
    assert figure.layout.xaxis.ticktext[-1] == str(STEPS + 10)
    drawn = {wide(STEPS + 15, 2)[place].step for place in targets(figure).customdata}
    assert drawn == set(range(10, STEPS + 10))


def test_the_path_beside_the_tree_is_dashed_and_leaves_it_in_a_lane_of_its_own():
    figure = search_tree(SMALL, NAMES, Beside("greedy search", [0], ["▁x", "</s>"], ["one", "two"]))
    (dashed,) = [each for each in figure.data if each.line.dash == "dash" and len(each.x) > 1]
    rows = [y for text, _, y in written(figure) if text in ("x", labels.escape("</s>"))]
    lane = max(rows)
    assert lane > max(y for text, _, y in written(figure) if text in ("a", "c"))
    assert np.nanmax(dashed.y) == pytest.approx(lane)
    assert {"greedy search", *NAMES.values()} == {each.name for each in figure.data if each.name}


def test_the_chosen_token_is_framed():
    plain, framed = search_tree(SMALL, NAMES), search_tree(SMALL, NAMES, chosen=3)
    assert len(framed.data) == len(plain.data) + 1
    assert len(search_tree(SMALL, NAMES, chosen=99).data) == len(plain.data)


def test_a_saved_tree_keeps_its_size_and_bears_its_caption():
    figure = search_tree(SMALL, NAMES)
    saved = printed(figure, ["Beam search"])
    assert saved.layout.width == figure.layout.width
    assert saved.layout.height > figure.layout.height
    assert any("Beam search" in each.text for each in saved.layout.annotations)
