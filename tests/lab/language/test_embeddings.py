from __future__ import annotations

import json

import numpy as np
import pytest

from lab.language.embeddings import Axes, embedding_maps, table_neighbours, unit_rows
from lab.language.neighbours import Neighbours

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


def test_the_axes_are_the_directions_of_the_largest_variance():
    rows = np.random.default_rng(1).normal(size=(200, 5)) * [1, 10, 0.5, 3, 0.1]
    axes = Axes.of(rows)
    assert np.abs(axes.directions).argmax(1).tolist() == [1, 3]
    assert axes.directions @ axes.directions.T == pytest.approx(np.eye(2))
    assert (axes.directions.max(1) > 0.9).all(), "the largest coordinate is positive"
    variances = np.linalg.eigvalsh(np.cov(rows.T))[::-1]
    assert axes.share(rows) == pytest.approx(variances[:2] / variances.sum())
    assert axes.points(rows).mean(0) == pytest.approx([0, 0], abs=1e-9)


def test_all_snapshots_are_seen_along_the_axes_of_the_last():
    snapshots = tables()
    company = table_neighbours(snapshots[-1][1], list(range(10, 30)), range(40), 2)
    values = embedding_maps(snapshots, list(range(10, 30)), range(40), PIECES, 3, company)
    rows = [unit_rows(table)[10:30] for _, table in snapshots]
    axes = Axes.of(rows[-1])
    for step, each in enumerate(rows):
        assert np.array(values["points"][step]) == pytest.approx(axes.points(each), abs=6e-4)
        assert values["share"][step] == pytest.approx(axes.share(each), rel=1e-3)
    assert values["share"][-1][0] == max(share for step in values["share"] for share in step)
    assert (values["steps"], values["words"]) == ([0, 10, 20, 30], PIECES[10:30])


def test_groups_that_part_become_one_another_s_neighbours():
    values = embedding_maps(tables(), [0, 1, 25], range(40), PIECES, 10, COMPANY)
    for word, place in (("low", 0), ("high", 2)):
        ids = [int(values["names"][at].removeprefix("▁w")) for at in values["neighbours"][-1][place]]
        assert all((id_ < 20) == (word == "low") for id_ in ids)
    first, last = (np.mean(values["cosines"][step]) for step in (0, -1))
    assert last > first


def test_neighbours_have_the_highest_cosine_whatever_their_length():
    table = np.array([[1.0, 0.0], [50.0, 50.0], [0.1, 0.01], [0.0, 9.0]])
    found = table_neighbours(table, [0], range(4), 2)
    assert found.ids.tolist() == [[2, 1]]
    assert found.cosines[0, 1] == pytest.approx(np.sqrt(0.5))


def test_company_is_compared_at_every_step():
    values = embedding_maps(tables(), [0, 1, 25], range(40), PIECES, 19, COMPANY)
    assert values["agree"][-1] == pytest.approx(3 / 19, rel=1e-3)
    assert values["agree"][0] < values["agree"][-1]
    assert [values["names"][at] for at in values["company"][0]] == ["▁w1", "▁w2", "▁w3"]


def test_the_values_are_plain_and_small():
    values = embedding_maps(tables(), [0, 1, 25], range(40), PIECES, 8, COMPANY)
    assert json.loads(json.dumps(values)) == values
    assert len(set(values["names"])) == len(values["names"]) <= 40


def test_too_many_bytes_are_refused_rather_than_written():
    with pytest.raises(ValueError, match="choose fewer words"):
        embedding_maps(tables(1400), [0, 1, 25], range(40), PIECES, 30, COMPANY)


@pytest.mark.parametrize(("count", "chosen"), [(4, [1, 2]), (0, [1, 2, 3]), (4, [1, 1, 2])])
def test_fewer_than_three_words_or_no_snapshot_give_no_plane(count, chosen):
    with pytest.raises(ValueError, match="at least 3 different words"):
        embedding_maps(tables(count), chosen, range(40), PIECES, 8, COMPANY)
