"""The maps of measures: what their cells say."""

from __future__ import annotations

import numpy as np

from explorer.figures.maps.measures import MeasureRow, measures_map


def test_only_a_zero_is_written_as_0():
    values = np.array([0.0, 1e-8, 0.004, -0.004, 0.25, np.nan])
    rows = [MeasureRow("weight", np.abs(values)), MeasureRow("effect", values, signed=True)]
    weight, effect = measures_map(rows, list("abcdef")).data[0].text
    assert list(weight) == ["0", "0", "0.00", "0.00", "0.25", "–"]
    assert list(effect) == ["0", "0", "0.00", "0.00", "+0.25", "–"]


def test_a_colour_is_a_share_of_the_largest_number_of_the_row_or_of_all_changes_in_nats():
    rows = [
        MeasureRow("weight", np.array([0.2, 0.5])),
        MeasureRow("small", np.array([0.5, -1.0]), signed=True),
        MeasureRow("large", np.array([np.nan, 2.0]), signed=True),
    ]
    (drawn,) = measures_map(rows, ["a", "b"]).data
    np.testing.assert_allclose(drawn.z, [[0.4, 1], [0.25, -0.5], [np.nan, 1]], rtol=1e-6)
    assert drawn.zmin == -drawn.zmax < -1


def test_what_is_hardly_more_than_rounding_stays_pale():
    rows = [
        MeasureRow("weight", np.array([1e-7, 0.0])),
        MeasureRow("effect", np.array([0.01, np.nan]), signed=True),
    ]
    np.testing.assert_allclose(measures_map(rows, ["a", "b"]).data[0].z, [[0.1, 0], [0.1, np.nan]], rtol=1e-6)


def test_numbers_stand_in_the_cells_of_up_to_sixteen_columns():
    said = [
        measures_map([MeasureRow("weight", np.ones(n))], ["a"] * n).data[0].texttemplate for n in (16, 17)
    ]
    assert said == ["%{text}", None]
