"""Numbers in sentences: a true minus sign, and none before a zero."""

from __future__ import annotations

import pytest

from explorer.lenses.what_if.questions.question import number


@pytest.mark.parametrize(
    ("value", "form", "written"),
    [
        (-1.234, ".2f", "−1.23"),
        (-0.001, ".2f", "0.00"),
        (-0.0001, "+.3f", "0.000"),
        (0.5, "+.1f", "+0.5"),
        (-1234567.0, ",.0f", "−1,234,567"),
    ],
)
def test_a_number_has_a_true_minus_and_a_zero_has_no_sign(value: float, form: str, written: str):
    assert number(value, form) == written
