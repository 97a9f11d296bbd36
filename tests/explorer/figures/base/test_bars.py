from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from head_views import decoder_view

from explorer.figures import next_token, row_bars_spec
from explorer.figures.base import style
from explorer.figures.base.bars import percent
from transformer.run import Alternative, DecodeStep


def step(chosen: int, count: int = 10) -> DecodeStep:
    options = tuple(Alternative(f"▁t{i}", i, math.log(0.5 / 2**i)) for i in range(count))
    return DecodeStep(f"▁t{chosen}", chosen, math.log(0.001), options, 0)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.37, "37\u00a0%"),
        (1.0, "100\u00a0%"),
        (0.999, "99.9\u00a0%"),
        (0.004, "0.4\u00a0%"),
        (0.0001, "<0.1\u00a0%"),
        (0.0, "0\u00a0%"),
    ],
)
def test_shares_are_written_in_per_cent(share: float, text: str):
    assert percent(share) == text


def test_every_step_is_a_frame():
    figure = next_token([step(0), step(2)])
    assert [frame.name for frame in figure.frames] == ["0", "1"]
    assert np.allclose(figure.data[0].x, [0.5 / 2**i for i in range(10)], atol=1e-6)


def test_the_chosen_token_is_bold_and_always_there():
    inside = next_token([step(2)]).layout.yaxis.ticktext
    assert [i for i, text in enumerate(inside) if "<b>" in text] == [2]
    outside = next_token([step(77)]).layout.yaxis.ticktext
    assert outside[9] == "<b>t77</b>"
    assert len(outside) == 10


def test_a_token_that_the_search_rules_exclude_says_so_in_place_of_its_probability():
    made = step(2)
    options = (replace(made.alternatives[0], excluded=True), *made.alternatives[1:])
    figure = next_token([replace(made, alternatives=options)])
    assert list(figure.data[0].text[:2]) == ["barred", "25\u00a0%"]


def test_the_row_of_the_cursor_says_its_sum_and_both_its_names():
    figure = style.figure(row_bars_spec(decoder_view(), row=2))
    assert figure.layout.title.text == "reads w1, predicts w2: Σ = 1.00"
    assert np.allclose(figure.data[0].y, decoder_view().weights[2])
    assert [frame.name for frame in figure.frames] == [str(i) for i in range(6)]
