"""The maps of measures: what their cells say."""

from __future__ import annotations

import numpy as np

from figures.maps.measures import MeasureRow, measures_map


def test_only_a_zero_is_written_as_0():
    values = np.array([0.0, 1e-8, 0.004, -0.004, 0.25, np.nan])
    rows = [MeasureRow("weight", np.abs(values)), MeasureRow("effect", values, signed=True)]
    weight, effect = measures_map(rows, list("abcdef")).data[0].text
    assert list(weight) == ["0", "0", "0.00", "0.00", "0.25", "–"]
    assert list(effect) == ["0", "0", "0.00", "0.00", "+0.25", "–"]
