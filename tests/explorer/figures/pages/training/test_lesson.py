from __future__ import annotations

from explorer.figures.maps.export import printed
from explorer.figures.pages.training.lesson import COLUMNS, GUESSED, Column, shifted_right, two_ways

SHORT = (
    Column("<s>", "▁Das", 0.1, "▁Das", 0.9),
    Column("▁Das", "▁alte", 2.5, "▁Haus", 0.8),
    Column("▁alte", "</s>", 1.0, "<b>", 0.3),
)


def test_each_token_is_read_right_of_the_place_at_which_it_is_predicted():
    figure = shifted_right(SHORT, 1)
    reads, predicts = [each for each in figure.data if each.type == "scatter" and each.mode == "text"]
    assert list(reads.text)[1:] == list(predicts.text)[:-1]
    assert list(figure.layout.yaxis2.ticktext) == ["reads", "to predict"]


def test_the_axis_has_room_for_the_tallest_bar_and_its_number():
    figure = shifted_right(SHORT, 0)
    assert figure.layout.yaxis.range[1] > 2.5


def test_only_a_window_of_a_long_target_is_drawn():
    figure = shifted_right(SHORT * 30, 0, first=7)
    (bars,) = [each for each in figure.data if each.type == "bar"]
    assert list(bars.customdata) == list(range(7, 7 + COLUMNS))
    assert figure.layout.xaxis.ticktext[0] == "8"


def test_wrong_guesses_are_coloured_and_the_parting_is_a_band():
    figure = two_ways(SHORT, ("▁Das", "▁Haus", "</s>"), 1)
    wrong = [each for each in figure.data if each.textfont.color == GUESSED]
    assert list(wrong[0].customdata) == [1, 2]
    assert figure.layout.shapes[0].x0 < 1 < figure.layout.shapes[0].x1
    assert not two_ways(SHORT, ("▁Das",), None).layout.shapes


def test_the_pictures_can_be_exported():
    for figure in (shifted_right(SHORT, 0), two_ways(SHORT, ("▁Das",), None)):
        assert printed(figure, ["caption", "provenance"]).layout.height > figure.layout.height
