from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.pages import anatomy
from explorer.figures.pages.anatomy import (
    Box,
    lens,
    norms,
    ranked,
    stream,
)

ENCODER = [Box("in", "embedding"), Box("a", "self-attention", "encoder", True), Box("b", "+", None, True, 1)]
DECODER = [Box("out", "embedding"), Box("c", "cross-attention", "cross", True), Box("d", "+", None, True, 2)]


def diagram(selected="a"):
    return anatomy.diagram(ENCODER, DECODER, ("3 ×", "2 ×"), selected, "c")


def test_every_box_can_be_clicked_along_its_whole_width():
    targets = diagram()["data"][0]
    for box in (*ENCODER, *DECODER):
        places = [x for x, part in zip(targets["x"], targets["customdata"], strict=True) if part == box.part]
        assert max(places) - min(places) == pytest.approx(1)
    assert targets["hoverinfo"] == "none"


def test_the_part_that_is_looked_at_is_framed_and_bold():
    figure = diagram("d")
    frames = [
        shape
        for shape in figure["layout"]["shapes"]
        if shape["type"] == "rect" and shape["line"]["width"] == 3
    ]
    assert len(frames) == 1
    assert [note["text"] for note in figure["layout"]["annotations"] if note["text"].startswith("<b>")] == [
        "<b>+</b>"
    ]


def test_shapes_stand_under_the_labels():
    figure = anatomy.diagram(
        [Box("a", "linear", None, True, shape="<8> → 9")], DECODER, ("1 ×", "1 ×"), "", "c"
    )
    first = figure["layout"]["annotations"][0]["text"]
    assert first == 'linear<br><span style="font-size:9px">&lt;8&gt; → 9</span>'


def test_layers_are_counted_beside_their_frame():
    texts = [note["text"] for note in diagram()["layout"]["annotations"]]
    assert {"3 ×", "2 ×"} <= set(texts)


@pytest.mark.parametrize("running", ["pre", "post"])
def test_both_norms_are_drawn_and_the_running_one_is_marked(running):
    texts = [note["text"] for note in norms(running)["layout"]["annotations"]]
    marked = [text for text in texts if "runs here" in text]
    assert len(marked) == 1
    assert f"{running}-norm" in marked[0]
    assert texts.count("LayerNorm") == 2
    assert norms(running).layout.height


def test_the_lens_keeps_probabilities_and_escapes_tokens():
    shares = np.array([[0.9, 0.1], [0.5, 0.25]])
    figure = lens(
        ("input", "after layer 1"),
        (("▁<b>", "▁#000001"), ("▁a", "▁b")),
        shares,
        np.array([[False, True], [False, False]]),
        ("rank 2", "rank 1"),
    )
    np.testing.assert_array_equal(figure["data"][0]["z"], shares.astype(np.float32))
    assert list(figure["data"][0]["text"][0]) == ["&lt;b&gt;", "&#35;000001"]
    assert list(figure["data"][1]["text"]) == [
        "&lt;b&gt; 90\u00a0%",
        "<b>&#35;000001 10\u00a0%</b>",
        "a 50\u00a0%",
        "b 25\u00a0%",
    ]
    assert list(figure["layout"]["yaxis"]["ticktext"]) == ["input, rank 2", "<b>after layer 1, rank 1</b>"]


def test_lengths_of_the_stream_name_their_places():
    figure = stream([("encoder at x", ["input", "layer 1"], np.array([1.0, 2.0]))])
    assert list(figure["data"][0]["text"]) == ["input", "layer 1"]
    np.testing.assert_array_equal(figure["data"][0]["y"], np.array([1, 2], dtype=np.float32))


def test_ranked_bars_keep_their_order_and_escape_names():
    figure = ranked(["<i>", "b"], np.array([0.5, -0.25]), ["0.50", "-0.25"], "cosine")
    assert list(figure["layout"]["yaxis"]["ticktext"]) == ["&lt;i&gt;", "b"]
    assert figure["layout"]["xaxis"]["range"][0] == -0.25
