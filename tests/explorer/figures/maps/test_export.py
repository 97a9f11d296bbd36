"""Figures that leave the app: caption inside, real colours, the marks of the cursor."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest
from closed_form import CASES, KNOWN
from head_views import decoder_view, view

from explorer.figures import heatmap, next_token
from explorer.figures.maps.export import INK, PAPER, marked, printed, wrapped
from explorer.lenses.words.reading import Reading, read_view
from transformer import AttentionKind, Window

HOSTILE = "<script>alert(1)</script> </script> <a href='x'>b</a> \u202eevil\u202c #000001 %{x} line\nbreak"


def caption(figure: go.Figure) -> str:
    return next(each.text for each in figure.layout.annotations if each.name == "caption")


def test_caption_and_provenance_stand_under_the_picture_and_widen_it():
    original = heatmap(view("cross", ("a", "b"), ("c", "d")), 330)
    figure = printed(
        original, ["Cross-attention · layer 3", "Attention explorer 0.1.0 · 2026-11-21 · ?text=a"]
    )
    assert "Cross-attention · layer 3" in caption(figure)
    assert "?text=a" in caption(figure).replace("<br>", "")
    assert figure.layout.height > original.layout.height
    assert figure.layout.margin.b - original.layout.margin.b == figure.layout.height - original.layout.height
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == PAPER
    assert figure.layout.font.color == INK
    assert original.layout.paper_bgcolor != PAPER


def test_a_hostile_caption_is_text():
    figure = printed(heatmap(view("cross", ("a",), ("b",))), [HOSTILE])
    written = caption(figure).replace("<br>", " ")
    assert "<" not in written
    assert "#0" not in written
    assert "\u202e" not in written
    assert "U+202E" in written
    page = figure.to_html(include_plotlyjs=False)
    assert "<script>alert" not in page
    assert page.count("</script>") == page.count("<script")


def test_long_captions_are_broken_cut_and_kept_whole_beside_the_figure():
    assert all(len(row) <= 20 for row in wrapped("word " * 50, 20))
    assert all(len(row) <= 10 for row in wrapped("日本語" * 30, 20))
    assert wrapped("x" * 10_000, 100)[-1].endswith("…")
    figure = printed(heatmap(view("cross", ("a",), ("b",))), ["x" * 10_000])
    assert figure.layout.meta["caption"] == ["x" * 10_000]


def test_figures_without_a_size_and_with_frames_are_printed_too():
    steps = [type("Step", (), {"token": "a", "token_id": 1, "log_prob": -1.0, "alternatives": ()})()]
    assert not printed(next_token(steps), ["x"]).frames
    assert printed(go.Figure(go.Bar(y=[1, 2])), ["x"]).layout.width == 900


def test_rows_after_the_cursor_are_a_second_trace_and_the_ring_is_a_shape():
    head = decoder_view(6)
    figure = marked(head, 2, 1)
    now, later = figure.data[:2]
    assert (len(now.z), len(later.z)) == (3, 3)
    assert (later.y0, later.dy, later.opacity) == (3, 1, 0.25)
    np.testing.assert_array_equal(np.vstack([now.z, later.z]), heatmap(head).data[0].z)
    np.testing.assert_array_equal(
        np.concatenate([now.customdata, later.customdata]), heatmap(head).data[0].customdata
    )
    assert [(shape.y0, shape.y1) for shape in figure.layout.shapes] == [(1.5, 2.5)] * 2
    assert figure.layout.shapes[1].x0 == 0.5


def test_the_last_row_fades_nothing_and_no_cursor_marks_nothing():
    head = decoder_view(4)
    assert len(marked(head, 3).data) == len(heatmap(head).data)
    for figure in (marked(head), marked(head, 9), marked(head, 1, later=False)):
        assert len(figure.data) == len(heatmap(head).data)
    assert not marked(head, 9).layout.shapes


def test_in_a_window_the_cursor_is_marked_where_the_window_shows_it():
    head = replace(decoder_view(4), window=Window(10, 14, 20, 24))
    row, cell = marked(head, 12, 21).layout.shapes
    assert (row.y0, row.y1, cell.x0, cell.x1) == (1.5, 2.5, 0.5, 1.5)
    assert not marked(head, 9).layout.shapes
    assert not marked(head, 14).layout.shapes


def test_a_map_read_in_words_is_marked_at_the_word_of_the_cursor():
    tokens = ("▁on", "e", "▁two", "</s>")
    read = read_view(view("encoder", tokens, tokens), Reading(words=True))
    figure = marked(read, 2, 2, later=False)
    assert (figure.layout.shapes[0].y0, figure.layout.shapes[0].y1) == (0.5, 1.5)


@pytest.mark.parametrize("kind", AttentionKind)
def test_known_cells_are_in_the_exported_page(solved, kind):
    case = CASES[solved.name]
    head = solved.translate(case.sentence).head(kind, 0, 1)
    page = printed(marked(head), ["x"]).to_html(include_plotlyjs=False)
    data, _ = json.JSONDecoder().raw_decode(page, page.index("[", page.index("Plotly.newPlot(") + 60))
    packed = data[0]["customdata"]
    cells = np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"])
    cells = cells.reshape([int(n) for n in packed["shape"].split(", ")])[..., 0]
    assert (cells[case.weights(kind, 1) == 1] > KNOWN).all()
