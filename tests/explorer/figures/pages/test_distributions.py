from __future__ import annotations

import pytest

from explorer.figures.maps.export import printed
from explorer.figures.pages.distributions import Piece, against_target, before_after, gradient_bars, small

PIECES = (
    Piece("Haus", 0.6, 0.9001, 1.0),
    Piece("<b>", 0.3, 0.0001, 0.0),
    Piece("998 others", 0.1, 0.0998, 0.0),
)


def test_the_gradient_is_the_model_s_share_minus_the_target_s():
    bare, smoothed = gradient_bars(PIECES, 0).data
    assert list(bare.x) == pytest.approx([-0.4, 0.3, 0.1])
    assert list(smoothed.x) == pytest.approx([each.share - each.target for each in PIECES])


def test_the_axis_has_room_for_the_numbers_on_both_sides():
    low, high = gradient_bars(PIECES, 0).layout.xaxis.range
    assert low < -0.4
    assert high > 0.3


def test_the_right_piece_is_bold_and_a_piece_is_never_markup():
    names = against_target(PIECES, 0).layout.yaxis.ticktext
    assert names[0] == "<b>Haus</b>"
    assert "<b>" not in names[1]


def test_very_small_shares_keep_a_digit():
    assert small(0.00001) == "0.001\u00a0%"
    assert small(0.0) == "0\u00a0%"
    assert small(1e-12).startswith("<")
    assert small(0.9) == "90\u00a0%"


def test_the_pictures_can_be_exported():
    for figure in (against_target(PIECES, 0), gradient_bars(PIECES, 0)):
        assert printed(figure, ["caption", "provenance"]).layout.height > figure.layout.height


def test_the_bars_before_and_after_say_both_probabilities():
    figure = before_after(["▁a", "▁b"], [0.6, 0.4], [1.0, 0.0], 1)
    assert [list(each.x) for each in figure.data] == [[0.6, 0.4], [1.0, 0.0]]
    assert figure.layout.yaxis.ticktext == ("a", "<b>b</b>")
    assert figure.data[1].text[1] == "–"
