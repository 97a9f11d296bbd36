from __future__ import annotations

import pytest

from explorer.app.address.encodings import ENCODINGS
from explorer.app.controls import formula
from transformer.encodings import REGISTRY


@pytest.mark.parametrize("positions", REGISTRY)
def test_cross_attention_has_neither_bias_nor_rotation(positions: str) -> None:
    written = formula.attention("cross", positions, masked=False)
    assert "+ B" not in written
    assert "prime" not in written
    assert not formula.explained("cross", positions)


@pytest.mark.parametrize("positions", REGISTRY)
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_self_attention_has_what_its_positions_add(kind: str, positions: str) -> None:
    written = formula.attention(kind, positions, masked=kind == "decoder")
    assert ("+ B" in written) == bool(ENCODINGS[positions].bias)
    assert ("prime" in written) == (ENCODINGS[positions].acts == "rotation")
    assert ("+ M" in written) == (kind == "decoder")
    assert bool(formula.explained(kind, positions)) == ("+ B" in written or "prime" in written)


@pytest.mark.parametrize(("score", "has"), [("scaled_dot", "sqrt"), ("dot", "Q"), ("additive", "tanh")])
def test_another_score_is_written_and_explained_as_it_is(score: str, has: str) -> None:
    written = formula.attention("cross", "none", False, score)
    assert has in written
    assert ("sqrt" in written) == (score == "scaled_dot")
    assert bool(formula.explained("cross", "none", score)) == (score != "scaled_dot")
