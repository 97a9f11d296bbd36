from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.pages.lecture import Symbols, lecture_keys, lecture_spec

WEIGHTS = np.array([0.05, 0.4, 0.1, 0.2, 0.25, 0.0])
MASK = np.array([True] * 5 + [False])
TOKENS = ("▁a", "▁b", "▁c", "▁d", "▁<s>", "▁f")
PAPER = Symbols("x", "m", "s", "w", "head", columns=False)
LECTURE = Symbols("a", "a", "α", "α̂", "b", columns=True)


def boxes(symbols):
    spec = lecture_spec("decoder", ("▁x", 4), TOKENS, np.arange(6.0) - 2, WEIGHTS, MASK, symbols)
    return [box["text"] for box in spec["layout"]["annotations"]]


def test_the_four_visible_keys_of_most_weight_are_drawn_in_reading_order():
    assert lecture_keys(WEIGHTS, MASK) == [1, 2, 3, 4]
    assert lecture_keys(np.array([1.0]), np.array([True])) == [0]


def test_a_lecture_s_symbols_carry_raised_positions():
    texts = boxes(LECTURE)
    assert "α̂ = <b>0.40</b>" in texts
    assert "α = −1.00" in texts
    assert "a²<br>b" in texts
    assert "q⁵ = W<sup>q</sup>a⁵" in texts
    assert "<b>b⁵</b> = Σ α̂ v" in texts
    assert any(text.startswith("a⁵") and "&lt;s&gt;" in text for text in texts)
    assert not any("a⁶" in text for text in texts)


def test_the_paper_s_symbols_carry_lowered_positions():
    texts = boxes(PAPER)
    assert "w = <b>0.40</b>" in texts
    assert "m<sub>2</sub><br>b" in texts
    assert "q<sub>5</sub> = x<sub>5</sub>W<sup>Q</sup>" in texts
    assert "<b>head</b> = Σ w v" in texts


@pytest.mark.parametrize("symbols", [PAPER, LECTURE])
def test_the_thickness_of_a_line_grows_with_the_weight(symbols):
    spec = lecture_spec("cross", ("▁x", 4), TOKENS, np.arange(6.0), WEIGHTS, MASK, symbols)
    widths = [trace["line"]["width"] for trace in spec["data"] if trace["line"]["width"] > 1]
    np.testing.assert_allclose(widths, 1 + 9 * WEIGHTS[1:5])
