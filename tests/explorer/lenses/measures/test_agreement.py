"""Agreement of ranks, and the range that chance gives."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.lenses.measures.agreement import agreement


def test_the_range_of_chance_holds_95_percent_of_permutations():
    random = np.random.default_rng(3)
    values = random.permutation(40).astype(float)
    found = agreement(values, np.arange(40.0))
    # without ties, permuted correlations have a standard deviation of 1 / √(n − 1)
    end = 1.96 / np.sqrt(39)
    assert found.low == pytest.approx(-end, abs=0.04)
    assert found.high == pytest.approx(end, abs=0.04)
    assert agreement(values, values).value == pytest.approx(1)
    assert agreement(values, -values).value == pytest.approx(-1)
    assert np.isnan(agreement(values, values, draws=0).low)
