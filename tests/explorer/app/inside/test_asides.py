from __future__ import annotations

import math
import re

import numpy as np
import pytest

from explorer.app.sections.inside.asides import measured, shifted, why_divide, why_subtract
from explorer.lenses.inside.spread import ProductSpread

SEEN = np.ones(3, dtype=bool)


def test_the_reason_for_the_root_names_the_measured_variances():
    spread = ProductSpread(products=64.0, pairs=12, query=1.5, key=0.5, d_head=16)
    text = why_divide(spread)
    assert "√16 = 4.00" in text
    assert "variance 64.0, and 4.00 after the division" in text
    assert "1 pair of" in measured(ProductSpread(1.0, 1, 1.0, 1.0, 4))


@pytest.mark.parametrize("largest", [2.0, 30.0, 95.0])
def test_a_row_is_said_to_break_exactly_if_it_does(largest: float):
    text = why_subtract(np.array([largest, 1.0, 0.0]), SEEN)
    broken = [
        name
        for name, dtype in (("half", np.float16), ("single", np.float32))
        if largest > math.log(float(np.finfo(dtype).max))
    ]
    assert f"exp({largest:.2f}) = {math.exp(largest):.4g}" in text
    assert ("breaks in" in text) == bool(broken)
    if broken:
        assert f"breaks in {' and '.join(broken)} precision" in text
    else:
        factor = float(re.search(r"scores ([\d.]+) times as large", text).group(1))
        assert factor == pytest.approx(math.log(float(np.finfo(np.float32).max)) / largest, abs=0.05)


def test_a_row_of_very_low_scores_is_said_to_divide_nothing_by_nothing():
    text = why_subtract(np.array([-200.0, -300.0, -250.0]), SEEN)
    assert "breaks in half and single precision: 0 ÷ 0" in text
    assert "exp(−200.00)" in text


def test_a_row_that_sees_nothing_says_so():
    assert "sees no key" in why_subtract(np.zeros(3), ~SEEN)


def test_the_identity_takes_the_letter_of_the_notation():
    assert shifted(r"\alpha").count(r"\alpha_") == 5
    assert r"\sum_i" in shifted("s")
