"""The map of words."""

from __future__ import annotations

import numpy as np

from figures.pages.language.words import Plane, word_map

POINTS = np.array([[0.0, 0.0], [0.001, 0.001], [1.0, 1.0], [0.5, -1.0], [0.002, 0.0]])


def made(chosen: int = 2, near: tuple[int, ...] = (3,)) -> Plane:
    ends = np.stack([POINTS.min(0), POINTS.max(0)])
    words = ("one", "<two>", "three", "four", "five")
    groups = ("a", "a", "b", "b", "a")
    return Plane(words, groups, POINTS, ends, [f"note {word}" for word in words], chosen, near, POINTS[:3])


def groups(plane: Plane) -> list:
    return [trace for trace in word_map(plane).data if trace.mode == "markers+text"]


def test_every_word_has_its_dot_and_says_on_a_click_which_it_is() -> None:
    first, second = groups(made())
    assert list(first.customdata) == [0, 1, 4]
    assert list(second.customdata) == [2, 3]
    np.testing.assert_allclose(np.stack([first.x, first.y], 1), POINTS[[0, 1, 4]])
    assert first.hovertext[1] == "note &lt;two&gt;"


def test_names_do_not_cover_one_another_but_chosen_words_and_neighbours_have_theirs() -> None:
    assert list(groups(made())[0].text) == ["one", "", ""]
    assert list(groups(made(chosen=1, near=(4,)))[0].text) == ["", "<b>&lt;two&gt;</b>", "<b>five</b>"]


def test_the_chosen_word_and_its_neighbours_are_ringed_and_its_way_is_drawn() -> None:
    path, *_, ring = word_map(made()).data
    np.testing.assert_allclose(np.stack([ring.x, ring.y], 1), POINTS[[2, 3]])
    np.testing.assert_allclose(np.stack([path.x, path.y], 1), POINTS[:3])


def test_the_axes_hold_the_places_of_the_whole_training() -> None:
    layout = word_map(made()).layout
    assert layout.xaxis.range[0] < 0 < 1 < layout.xaxis.range[1]
    assert layout.yaxis.range[0] < -1 < 1 < layout.yaxis.range[1]
