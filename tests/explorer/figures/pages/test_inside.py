"""The figures of Inside a head: the calculation, its curves, a lecture's drawing, a query that is built."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.base import style
from explorer.figures.pages.build import built_row, key_plane
from explorer.figures.pages.inside import LedgerRow, ledger_spec, saturation_spec
from explorer.figures.pages.lecture import Symbols, lecture_keys, lecture_spec

WEIGHTS = np.array([0.05, 0.4, 0.1, 0.2, 0.25, 0.0])
MASK = np.array([True] * 5 + [False])
TOKENS = ("▁a", "▁b", "▁c", "▁d", "▁<s>", "▁f")
ROWS = [LedgerRow("q·k", np.array([-4.0, 4, 0, 1, 2, 3])), LedgerRow("softmax", WEIGHTS, True, True)]
PAPER = Symbols("x", "m", "s", "w", "head", columns=False)
LECTURE = Symbols("a", "a", "α", "α̂", "b", columns=True)


def test_lines_of_the_calculation_keep_their_numbers_masked_cells_have_none_and_others_stand_apart():
    other = LedgerRow("what if: weight", WEIGHTS, share=True, what_if=True)
    spec = ledger_spec("decoder", TOKENS, MASK, [*ROWS, other], 1)
    products, weights, what_if = spec["data"][:3]
    np.testing.assert_array_equal(products["z"][0], ROWS[0].values)
    np.testing.assert_allclose(weights["z"][0], [*WEIGHTS[:5], np.nan], atol=1e-7)
    assert weights["colorscale"][1][1] != what_if["colorscale"][1][1]
    assert spec["layout"]["yaxis"]["tickvals"] == [0, 1, 2.6]
    (frame,) = spec["layout"]["shapes"]
    assert (frame["x0"], frame["x1"]) == (0.5, 1.5)
    white, plain = (each for each in spec["data"] if each.get("mode") == "text")
    assert list(zip(white["text"], white["x"], white["y"], strict=True)) == [("4.00", 1, 0)]
    assert (plain["text"][0], plain["x"][0]) == ("−4.00", 0)
    assert len(white["text"] + plain["text"]) == 6 + 5 + 6


def test_long_rows_write_no_numbers_but_name_every_key_under_the_pointer():
    many = tuple(f"▁t{i}" for i in range(64))
    spec = ledger_spec("cross", many, np.ones(64, dtype=bool), [LedgerRow("q·k", np.zeros(64))])
    assert [each["type"] for each in spec["data"]] == ["heatmap"]
    assert len(spec["data"][0]["text"][0]) == 64


def test_curves_of_saturation_carry_their_marks():
    factors = np.array([0.5, 1.0, 2.0])
    spec = saturation_spec(factors, [("largest weight", factors / 4)], [("the model", 1.0), ("what if", 2.0)])
    assert [shape["x0"] for shape in spec["layout"]["shapes"]] == [1.0, 2.0]
    np.testing.assert_array_equal(spec["data"][0]["y"], (factors / 4).astype(np.float32))


@pytest.mark.parametrize(
    ("symbols", "written"),
    [
        (LECTURE, {"α̂ = <b>0.40</b>", "α = −1.00", "a²<br>b", "q⁵ = W<sup>q</sup>a⁵", "<b>b⁵</b> = Σ α̂ v"}),
        (
            PAPER,
            {"w = <b>0.40</b>", "s = −1.00", "m<sub>2</sub><br>b", "<b>head</b> = Σ w v"}
            | {"q<sub>5</sub> = x<sub>5</sub>W<sup>Q</sup>"},
        ),
    ],
)
def test_a_drawing_writes_symbols_and_draws_the_four_visible_keys_of_most_weight(symbols, written):
    assert lecture_keys(WEIGHTS, MASK) == [1, 2, 3, 4]
    assert lecture_keys(np.array([1.0]), np.array([True])) == [0]
    spec = lecture_spec("decoder", ("▁<x>", 4), TOKENS, np.arange(6.0) - 2, WEIGHTS, MASK, symbols)
    texts = {box["text"] for box in spec["layout"]["annotations"]}
    assert written <= texts
    assert any("&lt;x&gt;" in text for text in texts)
    assert not any(each in text for text in texts for each in ("a⁶", "m<sub>6"))
    widths = [trace["line"]["width"] for trace in spec["data"] if trace["line"]["width"] > 1]
    np.testing.assert_allclose(widths, 1 + 9 * WEIGHTS[1:5])


def test_a_built_row_shows_weights_and_scores_of_visible_keys_and_hatches_the_others():
    mask, weights = np.array([True, True, True, False]), np.array([0.67, 0.09, 0.24, 0.0])
    tokens = ("▁a", "▁b", "▁a", "▁c")
    figure = built_row("cross", tokens, mask, np.array([3.0, 1.0, 2.0, 9.0]), weights, (0, 2), [0.5])
    bars, points, hatched = figure.data
    assert np.asarray(bars.y) == pytest.approx([0.67, 0.09, 0.24, np.nan], nan_ok=True)
    assert np.asarray(points.y) == pytest.approx([3, 1, 2, np.nan], nan_ok=True)
    assert [color == style.HUES["cross"] for color in bars.marker.color] == [True, False, True, False]
    assert len({*bars.hovertext}) == 4
    assert hatched.hoverinfo == "skip"


def test_the_arrow_points_along_the_query_whatever_its_length():
    points = np.array([[2.0, 0.0], [1.0, 1.0], [0.5, -1.0], [3.0, 0.2]])
    for length in (0.1, 30.0):
        figure = key_plane("encoder", TOKENS[:4], points, length * np.array([0.6, -0.8]), (0, 1))
        arrow = figure.layout.annotations[0]
        assert arrow.y / arrow.x == pytest.approx(-0.8 / 0.6)
        assert figure.layout.yaxis.range[0] < arrow.y < figure.layout.yaxis.range[1]
    assert not key_plane("encoder", TOKENS[:4], points, np.zeros(2), (0, 1)).layout.annotations
