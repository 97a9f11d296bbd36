"""The head that opens first is the one whose rows differ most."""

from __future__ import annotations

import math

import numpy as np
import pytest

from explorer.app.server.workshop.run import difference


def test_rows_that_each_look_at_a_key_of_their_own_differ_most() -> None:
    assert difference(np.eye(5)) == pytest.approx(math.log(5))
    assert difference(np.eye(5)[::-1]) == pytest.approx(math.log(5))


def test_rows_that_are_alike_do_not_differ_however_sharp_they_are() -> None:
    assert difference(np.eye(5)[[2, 2, 2]]) == pytest.approx(0)
    assert difference(np.full((4, 3), 1 / 3)) == pytest.approx(0)
