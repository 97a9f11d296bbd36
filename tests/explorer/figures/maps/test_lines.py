from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from explorer.figures.base.style import HUES
from explorer.figures.maps.lines import SEVERAL, WeightLine, lines, links
from explorer.figures.maps.strongest import strongest


def head(weights, kind="cross", index=0):
    weights = np.array(weights, dtype=np.float32)
    queries, keys = weights.shape
    return SimpleNamespace(
        kind=kind,
        layer=0,
        head=index,
        query_tokens=("<s>", *(f"▁y{i}" for i in range(1, queries))),
        predicted_tokens=(*(f"▁y{i}" for i in range(1, queries)), "</s>"),
        key_tokens=tuple(f"▁x{i}" for i in range(keys)),
        window=SimpleNamespace(query_start=0, query_stop=queries, key_start=0, key_stop=keys),
        scores=np.zeros_like(weights),
        mask=weights > 0,
        weights=weights,
    )


def test_links_carry_the_asked_share_of_each_row_with_the_fewest_lines():
    view = head([[0.5, 0.3, 0.2], [0.9, 0.1, 0.0]])
    assert links(view, mass=0.7) == [
        WeightLine(0, 0, 0.5),
        WeightLine(0, 1, pytest.approx(0.3)),
        WeightLine(1, 0, pytest.approx(0.9)),
    ]
    assert len(links(view, mass=None)) == 5
    assert [link.weight for link in links(view, mass=None, threshold=0.5)] == [0.5, pytest.approx(0.9)]


def test_a_line_runs_from_its_query_to_its_key():
    figure = lines([head([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])])
    drawn = {tuple(y[i : i + 2]) for y in (t.y for t in figure.data if t.mode == "lines") for i in (0, 3)}
    assert drawn == {(0.0, 2.0), (1.0, 0.0)}
    assert figure.layout.yaxis.ticktext[1] == "&lt;/s&gt;"
    assert figure.layout.yaxis2.ticktext == ("x0", "x1", "x2")
    assert {t.line.color for t in figure.data if t.mode == "lines"} == {HUES["cross"]}


def test_heads_drawn_together_have_their_own_colours_and_a_legend():
    figure = lines([head([[1.0, 0.0]]), head([[0.0, 1.0]], index=1)])
    looks = {(t.line.color, t.line.dash) for t in figure.data if t.mode == "lines"}
    assert looks == set(SEVERAL[:2])
    assert sorted(t.name for t in figure.data if t.showlegend) == ["L1 H1", "L1 H2"]


def test_an_isolated_query_keeps_the_others_faint():
    figure = lines([head([[1.0, 0.0], [0.0, 1.0]])], query=1)
    opacity = {t.y[0]: t.opacity for t in figure.data if t.mode == "lines"}
    assert opacity[1.0] == 1.0
    assert opacity[0.0] < 0.2


def test_heads_of_different_kinds_and_shares_over_one_are_refused():
    with pytest.raises(ValueError, match="one kind"):
        lines([head([[1.0]]), head([[1.0]], kind="encoder")])
    with pytest.raises(ValueError, match="from 0 to 1"):
        links(head([[1.0]]), mass=1.5)
    with pytest.raises(ValueError, match="1 to 4"):
        lines([])


def test_strongest_keys_come_sorted_and_masked_ones_not_at_all():
    figure = strongest(head([[0.2, 0.7, 0.1, 0.0]]), 0)
    np.testing.assert_allclose(figure.data[0].x, [0.7, 0.2, 0.1], rtol=1e-6)
    assert figure.layout.yaxis.ticktext == ("x1", "x0", "x2")


def test_the_reverse_lists_the_queries_that_look_at_a_key():
    figure = strongest(head([[0.2, 0.8], [0.6, 0.4]]), 0, of="key")
    np.testing.assert_allclose(figure.data[0].x, [0.6, 0.2], rtol=1e-6)
    assert figure.layout.yaxis.ticktext[0].startswith("reads y1")


def test_heads_drawn_together_keep_their_own_weights_and_names_in_the_hover():
    first, second = head([[0.9, 0.1]]), head([[0.2, 0.8]], index=1)
    points = [t for t in lines([first, second], mass=None).data if t.mode == "markers"]
    assert [t.hovertemplate.split(" · ")[0] for t in points] == ["L1 H1", "L1 H2"]
    for view, its in zip((first, second), points, strict=True):
        assert sorted(its.customdata.tolist()) == sorted(view.weights[0].tolist())


def test_the_share_of_a_row_is_that_of_its_own_sum():
    """Rows of local attention sum to less than 1."""
    assert links(head([[0.3, 0.1, 0.1]]), mass=0.5) == [WeightLine(0, 0, pytest.approx(0.3))]
