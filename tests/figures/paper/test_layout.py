"""Where maps, labels and the legend stand on a sheet."""

from __future__ import annotations

import pytest
from head_views import decoder_view, view

from figures.paper.form import Form
from figures.paper.layout import Panel, flowing, lay_out


def panels(count: int, form: Form, tokens: int = 5) -> list[Panel]:
    heads = [view("encoder", tuple("▁ab" for _ in range(tokens)), ("▁a",) * tokens) for _ in range(count)]
    return [Panel.of(head, ("(a)",), form, lambda text: 0.5 * form.letters * len(text)) for head in heads]


@pytest.mark.parametrize(("count", "columns"), [(1, 3), (4, 3), (6, 2), (12, 4)])
def test_maps_stand_side_by_side_inside_the_width(count: int, columns: int) -> None:
    form = Form(columns=columns)
    laid = lay_out(panels(count, form), form)
    assert len(set(laid.corners)) == count
    assert len({x for x, _ in laid.corners}) == min(count, columns)
    for x, y in laid.corners:
        assert x + 5 * laid.cell <= form.points
        assert y + 5 * laid.cell <= laid.bottom


@pytest.mark.parametrize(("tokens", "width"), [(5, 8.5), (40, 17), (60, 17), (64, 8.5)])
def test_labels_never_overlap_and_stay_readable(tokens: int, width: float) -> None:
    form = Form(width=width)
    laid = lay_out(panels(1, form, tokens), form)
    assert laid.step * laid.cell >= 0.94 * laid.letters
    assert 5 <= laid.letters <= form.letters


def test_a_row_of_a_decoder_names_the_token_that_it_reads() -> None:
    panel = Panel.of(decoder_view(4), (), Form(), len)
    assert panel.titles == ("queries (token read)", "keys")
    assert panel.rows == ["<s>", "w0", "w1", "w2"]


def test_things_beside_one_another_break_into_rows() -> None:
    assert flowing([3, 3, 3], 7, 1) == [[0, 1], [2]]
    assert flowing([9, 1, 1], 4, 1) == [[0], [1, 2]]
    assert flowing([], 4, 1) == []
