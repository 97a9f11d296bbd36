from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.maps.difference import difference_map, merged_names, scale_end

FIRST = np.array([[0.75, 0.25, 0.0], [0.5, 0.5, 0.0]], dtype=np.float32)
SECOND = np.array([[0.25, 0.25, 0.5], [0.0, 0.0, 0.0]], dtype=np.float32)
COMPARED = np.array([[True, True, False], [False, False, False]])


def drawn():
    distances = np.array([0.5, np.nan])
    return difference_map(
        FIRST, SECOND, COMPARED, ("x", "A: y"), ("a", "b", "B: c"), distances, 0.5, ("rows", "columns")
    )


def test_the_scale_is_centred_on_zero_and_printed():
    cells = drawn().data[0]
    assert (cells.zmin, cells.zmax) == (-0.5, 0.5)
    assert list(cells.colorbar.ticktext) == ["−0.5", "0", "0.5"]


def test_what_one_side_lacks_is_hatched_and_never_differenced():
    cells, hatched = drawn().data[:2]
    assert cells.z.tolist() == [[0.5, 0, 0], [0, 0, 0]]
    assert hatched.fillpattern.shape == "/"
    assert cells.text[0][2] == "x, key B: c (not compared)"


def test_the_distance_stands_at_the_end_of_its_row():
    assert list(drawn().layout.yaxis2.ticktext) == ["0.50", ""]


@pytest.mark.parametrize(("most", "end"), [(0.0, 0.1), (0.31, 0.4), (0.4, 0.4), (0.4000001, 0.4), (1.0, 1.0)])
def test_the_scale_ends_at_the_next_tenth(most: float, end: float):
    assert scale_end(most) == pytest.approx(end)


def test_names_tell_which_side_a_token_is_from():
    pairs = ((0, 0), (1, 1), (2, None), (None, 2))
    assert merged_names(("▁a", "▁b", "c"), ("▁a", "▁x", "</s>"), pairs) == ["a", "b | x", "A: ‿c", "B: </s>"]


def test_a_map_beyond_64_cells_is_refused():
    with pytest.raises(ValueError, match="ask for a window"):
        difference_map(*[np.zeros((65, 1))] * 2, np.ones((65, 1), bool), (), (), np.zeros(65), 1, ("", ""))
