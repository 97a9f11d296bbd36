from __future__ import annotations

import numpy as np

from explorer.figures.base import style
from explorer.figures.base.plot import colour_bar, hover, named_axis, targets


def test_a_note_is_text_with_line_breaks():
    assert hover("a < b\nc") == "a &lt; b<br>c"


def test_every_cell_takes_the_pointer_and_stays_unseen_when_it_is_chosen():
    figure = style.figure(style.spec([targets(np.arange(2), [0, 0], ["x", "y"], ["one", "two"], 14)], {}))
    (trace,) = figure.data
    assert list(trace.customdata) == ["x", "y"]
    assert {each.marker.opacity for each in (trace, trace.selected, trace.unselected)} == {0}


def test_names_on_the_left_go_from_the_top_down():
    assert named_axis(["a", "b", "c"], down=True)["range"] == [2.5, -0.5]
    assert named_axis(["a", "b", "c"])["range"] == [-0.5, 2.5]
    assert named_axis(["a", "b", "c"], every=2)["ticktext"] == ["a", "c"]


def test_a_colour_bar_shows_its_ticks_and_has_a_title_only_if_there_is_one():
    bar = colour_bar({0.0: "0", 1.0: "1 %"}, 0.5)
    assert bar["ticktext"] == ["0", "1 %"]
    assert "title" not in bar
    assert colour_bar({}, 0.5, title="nats")["title"]["text"] == "nats"
