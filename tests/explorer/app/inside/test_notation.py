from __future__ import annotations

import pytest

from explorer.app.sections.inside.notation import NAMES, notation


def test_the_paper_writes_rows_and_a_lecture_columns_with_shapes_that_fit():
    paper, lecture = notation("paper", "encoder"), notation("lecture", "encoder")
    row = r"\underset{1 \times 8}{q} = \underset{1 \times 64}{x}\,\underset{64 \times 8}{W^{Q}} + \text{bias}"
    matrix = r"\underset{8 \times 64}{W^{q}}"
    column = rf"\underset{{8 \times 1}}{{q}} = {matrix}\,\underset{{64 \times 1}}{{a}} + \text{{bias}}"
    assert paper.product("q", "x", "Q", (64, 8)) == row
    assert lecture.product("q", "a", "Q", (64, 8)) == column
    assert (paper.indexed("k"), lecture.indexed("k")) == ("k_j", "k^j")


@pytest.mark.parametrize("name", NAMES)
def test_no_two_things_share_a_letter(name: str):
    for kind in ("encoder", "decoder"):
        symbols = notation(name, kind)
        assert symbols.x == symbols.source
        assert len({symbols.x, symbols.score, symbols.weight, symbols.output, "q", "k", "v"}) == 7
    cross = notation(name, "cross")
    assert len({cross.x, cross.source, cross.score, cross.weight, cross.output, "q", "k", "v"}) == 8
