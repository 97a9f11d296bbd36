"""Lines over snapshots."""

from __future__ import annotations

import pytest

from figures.pages.training.birth import Trend, over_snapshots

STEPS = (0, 8, 16, 32)


def trends() -> list[Trend]:
    return [
        Trend("<best>", (0.1, 0.2, 0.4, 0.8), "#0072B2"),
        Trend("", (0.2, 0.2, 0.3, 0.5), "#0072B2", faint=True),
    ]


def test_snapshots_stand_at_even_distances_and_the_axis_names_their_steps() -> None:
    figure = over_snapshots((0, *(2**i for i in range(3, 14))), [], "share")
    assert figure.layout.xaxis.ticktext[-1] == "8,192"
    assert set(figure.layout.xaxis.tickvals) <= set(range(12))
    first = over_snapshots(STEPS, trends(), "share").data[0]
    assert list(first.x) == [0, 1, 2, 3]
    assert list(first.y) == [0.1, 0.2, 0.4, 0.8]


def test_another_seed_is_a_thin_line_without_a_name_in_the_legend() -> None:
    _, other = over_snapshots(STEPS, trends(), "share").data
    assert other.line.width < 2
    assert not other.showlegend


def test_a_click_on_a_point_gives_its_snapshot_and_the_chosen_one_is_marked() -> None:
    figure = over_snapshots(STEPS, trends(), "share", chosen=2)
    assert list(figure.data[-1].customdata) == [0, 1, 2, 3]
    assert figure.layout.shapes[0].x0 == 2
    assert not over_snapshots(STEPS, trends(), "share").layout.shapes


@pytest.mark.parametrize(("percent", "written"), [(True, "40.0\u00a0%"), (False, "0.40")])
def test_the_hover_text_names_the_step_and_escapes_the_line(percent: bool, written: str) -> None:
    line = over_snapshots(STEPS, trends(), "share", percent=percent).data[0]
    assert line.hovertext[2] == f"step 16<br>&lt;best&gt;: {written}"
