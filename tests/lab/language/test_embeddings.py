from __future__ import annotations

import json

import numpy as np
import pytest

from lab.language.embeddings import Neighbours, neighbours_in_training, table_neighbours, unit_rows

PIECES = [f"▁w{n}" for n in range(40)]


def tables(count=4):
    """Two groups of 20 pieces that part from one another, step by step."""
    drawn = np.random.default_rng(0)
    noise = drawn.normal(size=(40, 16))
    apart = np.where(np.arange(40)[:, None] < 20, 1.0, -1.0) * drawn.normal(size=(1, 16))
    return [(10 * step, noise + step * apart) for step in range(count)]


COMPANY = Neighbours(np.array([[1, 2, 3], [0, 2, 3], [26, 27, 28]]), np.ones((3, 3)))


def test_rows_have_length_one_and_zero_rows_stay():
    rows = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    assert rows.tolist() == [[0.6, 0.8], [0, 0]]


def test_groups_that_part_become_one_another_s_neighbours():
    values = neighbours_in_training(tables(), [0, 1, 25], range(40), PIECES, 10, COMPANY)
    for word, place in (("low", 0), ("high", 2)):
        ids = [int(values["names"][at].removeprefix("▁w")) for at in values["neighbours"][-1][place]]
        assert all((id_ < 20) == (word == "low") for id_ in ids)


def test_neighbours_have_the_highest_cosine_whatever_their_length():
    table = np.array([[1.0, 0.0], [50.0, 50.0], [0.1, 0.01], [0.0, 9.0]])
    found = table_neighbours(table, [0], range(4), 2)
    assert found.ids.tolist() == [[2, 1]]
    assert found.cosines[0, 1] == pytest.approx(np.sqrt(0.5))


def test_company_is_compared_at_every_step():
    values = neighbours_in_training(tables(), [0, 1, 25], range(40), PIECES, 19, COMPANY)
    assert values["agree"][-1] == pytest.approx(3 / 19, rel=1e-3)
    assert values["agree"][0] < values["agree"][-1]
    assert [values["names"][at] for at in values["company"][0]] == ["▁w1", "▁w2", "▁w3"]


def test_the_values_are_plain_and_small():
    values = neighbours_in_training(tables(), [0, 1, 25], range(40), PIECES, 8, COMPANY)
    assert json.loads(json.dumps(values)) == values
    assert len(set(values["names"])) == len(values["names"]) <= 40


@pytest.mark.parametrize(("count", "chosen"), [(4, []), (0, [1, 2, 3])])
def test_no_word_or_no_snapshot_has_no_neighbours(count, chosen):
    with pytest.raises(ValueError, match="a snapshot and at least one word"):
        neighbours_in_training(tables(count), chosen, range(40), PIECES, 3, COMPANY)
