"""What "Inside a head" writes: formulas in two notations, and why scores are divided and shifted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from explorer.app.sections.inside.look import NAMES, notation
from explorer.app.sections.inside.steps import seven_matrices, why_divide, why_subtract
from explorer.lenses.inside.inside import ProductSpread

SEEN = np.ones(3, dtype=bool)


@pytest.mark.parametrize(
    ("formula", "paper", "lecture"),
    [
        (r"OUTPUT = \sum_j WEIGHT_j v_j", r"\mathrm{head} = \sum_j w_j v_j", r"b = \sum_j \hat\alpha_j v^j"),
        (r"q \cdot k_j + k_{j,i}", r"q \cdot k_j + k_{j,i}", r"q \cdot k^j + k^j_i"),
        (r"y_i = OWN_i \cdot SOURCE_j", r"y_i = x_i \cdot m_j", r"y^i = x^i \cdot a^j"),
        (r"SCORE_j = [k_j, {k'}_j]", r"s_j = [k_j, {k'}_j]", r"\alpha_j = [k^j, {k'}^j]"),
        (r"u^{\top} \tanh(W q) + W^O", r"u^{\top} \tanh(W q) + W^O", r"u^{\top} \tanh(W q) + W^o"),
    ],
)
def test_a_formula_is_written_once_for_two_notations(formula: str, paper: str, lecture: str):
    assert notation("paper", "cross").latex(formula) == paper
    assert notation("lecture", "cross").latex(formula) == lecture


def test_the_paper_writes_rows_and_a_lecture_columns_with_shapes_that_fit():
    paper, lecture = notation("paper", "encoder"), notation("lecture", "encoder")
    row = r"\underset{1 \times 8}{q} = \underset{1 \times 64}{x}\,\underset{64 \times 8}{W^Q} + \text{bias}"
    matrix = r"\underset{8 \times 64}{W^q}"
    column = rf"\underset{{8 \times 1}}{{q}} = {matrix}\,\underset{{64 \times 1}}{{a}} + \text{{bias}}"
    assert paper.latex(paper.product("q", "OWN", "Q", 64, 8)) == row
    assert lecture.latex(lecture.product("q", "OWN", "Q", 64, 8)) == column


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_no_two_things_share_a_letter(name: str, kind: str):
    symbols = notation(name, kind)
    others = {symbols.x, symbols.source, symbols.score, symbols.weight, symbols.output, "q", "k", "v"}
    assert (symbols.x == symbols.source) == (kind != "cross")
    assert len(others) == (8 if kind == "cross" else 7)


def test_the_reason_for_the_root_names_the_measured_variances():
    text = why_divide(ProductSpread(products=64.0, pairs=1, query=1.5, key=0.5, d_head=16))
    assert "√16 = 4.00" in text
    assert "(over its 1 pair of a query and a key it may see)" in text
    assert "variance 64.0, and 4.00 after the division. The entries of all its queries" in text
    assert "variance 1.50, those of its keys 0.50." in text
    undivided = why_divide(ProductSpread(64.0, 1_200, 1.5, 0.5, 16), divided=False)
    assert "1,200 pairs" in undivided
    assert "variance 64.0. The entries" in undivided


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([2.0, 1.0, 0.0], "This row stays below both."),
        ([30.0, 1.0, 0.0], "breaks in half precision: a number ÷ ∞ is 0"),
        ([95.0, 1.0, 0.0], "breaks in half and single precision: a number ÷ ∞ is 0"),
        ([-200.0, -300.0, -250.0], "breaks in half and single precision: 0 ÷ 0"),
    ],
)
def test_a_row_is_said_to_break_exactly_if_it_does(scores: list[float], said: str):
    text = why_subtract(np.array(scores), SEEN)
    largest = f"{scores[0]:.2f}".replace("-", "−")
    assert f"exp({largest}) = {math.exp(scores[0]):.4g}" in text
    assert said in text
    assert "sees no key" in why_subtract(np.array(scores), ~SEEN)


def test_two_heads_are_seven_matrices_with_their_count():
    text = seven_matrices(512, 64, 8)
    assert text.count("begin{pmatrix}") == 7
    assert "Head 1 finds “cat”" in text
    assert "head 2 finds “mouse”" in text
    assert "3 · 8 + 1 = 25 matrices with 4 · 512² = 1,048,576 numbers" in text
    assert "4 · 512 · 384 = 786,432" in seven_matrices(512, 64, 6)
