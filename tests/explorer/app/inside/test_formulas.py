from __future__ import annotations

import pytest

from explorer.app.sections.inside.formulas import Terms


def test_a_plain_head_is_the_paper_s_formula():
    terms = Terms(rotated=False, rule="", masked=False, kind="encoder")
    assert terms.rows() == (
        r"\mathrm{head} = \mathrm{softmax}\!\left(\tfrac{Q K^{\top}}{\sqrt{d_k}}\right) V"
    )
    assert terms.defined() == ()
    assert "padding" in terms.words()


@pytest.mark.parametrize("rule", ["alibi", "t5", "shaw"])
@pytest.mark.parametrize("masked", [True, False])
def test_every_letter_of_a_formula_is_defined(rule: str, masked: bool):
    terms = Terms(rotated=False, rule=rule, masked=masked, kind="decoder" if masked else "encoder")
    defined = " ".join(terms.defined())
    for written in (terms.rows(), " ".join(terms.columns()), terms.row("w"), terms.column("w", "s")):
        assert "B" in written
        assert ("M" in written) == masked
    assert "B_{ij}" in defined
    assert ("M_{ij}" in defined) == masked


def test_a_rotation_marks_queries_and_keys_and_never_values():
    terms = Terms(rotated=True, rule="", masked=True, kind="decoder")
    assert r"\tilde Q \tilde K" in terms.rows()
    assert r"\tilde V" not in terms.rows()
    assert r"\tilde q_i = q_i R_i" in terms.defined()[0]
