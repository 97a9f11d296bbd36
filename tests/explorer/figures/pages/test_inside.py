from __future__ import annotations

import numpy as np

from explorer.figures.pages.inside import LedgerRow, ledger_spec, saturation_spec

WEIGHTS = np.array([0.05, 0.4, 0.1, 0.2, 0.25, 0.0])
MASK = np.array([True] * 5 + [False])
TOKENS = ("▁a", "▁b", "▁c", "▁d", "▁<s>", "▁f")


def rows():
    return [LedgerRow("q·k", np.arange(6.0)), LedgerRow("softmax", WEIGHTS, share=True, masked=True)]


def test_lines_of_the_calculation_keep_their_numbers_and_masked_cells_have_none():
    data = ledger_spec("decoder", TOKENS, MASK, rows(), 1)["data"]
    np.testing.assert_array_equal(data[0]["z"][0], np.arange(6))
    assert np.isnan(data[1]["z"][0, 5])
    np.testing.assert_allclose(data[1]["z"][0, :5], WEIGHTS[:5], atol=1e-7)
    numbers = [text for each in data if each.get("mode") == "text" for text in each["text"]]
    assert numbers.count("0.40") == 1
    assert len(numbers) == 11


def test_negative_numbers_carry_a_true_minus_sign_and_white_is_for_strong_purple():
    spec = ledger_spec(
        "cross", TOKENS, np.ones(6, dtype=bool), [LedgerRow("q·k", np.array([-4, 4, 0, 1, 2, 3.0]))]
    )
    white, plain = (each for each in spec["data"] if each.get("mode") == "text")
    assert white["text"] == ["4.00"]
    assert plain["text"][0] == "−4.00"


def test_lines_that_are_not_the_model_s_stand_apart_in_grey():
    other = LedgerRow("what if: weight", WEIGHTS, share=True, what_if=True)
    spec = ledger_spec("cross", TOKENS, MASK, [*rows(), other])
    assert spec["layout"]["yaxis"]["tickvals"] == [0, 1, 2.6]
    assert spec["data"][1]["colorscale"][1][1] != spec["data"][2]["colorscale"][1][1]


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
