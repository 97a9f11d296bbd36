"""The whole look of every figure; tokens as text in each; and each as it is printed."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from golden import agrees
from head_views import decoder_view, view

from explorer.figures import Tile, heatmap, next_token, overview_spec, pooled_spec, row_bars_spec
from explorer.figures.base import style
from explorer.figures.base.bars import strongest
from explorer.figures.base.plot import quiet
from explorer.figures.base.strips import Strip, matrices_spec, strips_spec, vectors_spec
from explorer.figures.maps.alignment import alignment_map
from explorer.figures.maps.export import INK, PAPER, marked, printed
from explorer.figures.maps.heatmap import framed, lowered
from explorer.figures.maps.lines import lines
from explorer.figures.maps.measures import MeasureRow, measures_map, part_bars, share_bars
from explorer.figures.maps.overview import Measure
from explorer.figures.pages import anatomy, inside, positions, study
from explorer.figures.pages.anatomy import Box
from explorer.figures.pages.distributions import (
    against_target,
    before_after,
    bits_spec,
    gradient_bars,
)
from explorer.figures.pages.heads import Cell, Marks, distance_bars, head_grid, plane
from explorer.figures.pages.inside import LedgerRow, Symbols, key_plane, lecture_spec, ledger_spec
from explorer.figures.pages.masks import leak_bars, mask_map, padding_grid, score_map, weight_map
from explorer.figures.pages.recurrent import paths, with_centres
from explorer.figures.pages.search import KEPT, LOST, WON, Beside, Branch, search_tree
from explorer.figures.pages.study import Chart
from explorer.figures.pages.training import (
    Column,
    Curve,
    Panel,
    curves,
    panels,
    shifted_right,
    two_ways,
)
from explorer.figures.pages.what_if import StepMove, control_strip, delta_bars, difference_map
from transformer.run import Alternative, DecodeStep

CLEAR = {"dragmode": False} | dict.fromkeys(("paper_bgcolor", "plot_bgcolor"), "rgba(0,0,0,0)")
FILE = Path(__file__).with_name("looks.json")
BAD = ("</s>", "<a href='x'>", "#000001", "&lt;", "%{evil}", "$x$")
"""Tokens that look like markup, colours, templates or formulas."""
EVIL = BAD[1]
ROWS = np.array([[0.9, 0.1, 0.0], [0.0, 0.2, 0.8]], dtype=np.float32)
OTHER = np.array([[0.25, 0.25, 0.5], [0.0, 0.0, 0.0]], dtype=np.float32)
FEW = np.array([[True, True, False], [False, False, False]])
SIGNED = np.array([0.0, 1e-8, 0.004, -0.004, 0.25, np.nan])
LINKS = {"links": {(0, 0), (2, 1)}, "sure": {(0, 0)}, "possible": {(0, 0), (1, 1)}}
WAVE = np.array([0.5, -2.0, 1.0, 0.25])
MASK = np.array([True] * 5 + [False])
SIX = np.array([0.05, 0.4, 0.1, 0.2, 0.25, 0.0])
CROSS = view("cross", ("<s>", "▁a", EVIL), ("▁x", BAD[2]), predicted_tokens=("▁a", EVIL, "</s>"))
DECODER = decoder_view(4)
NUMBERS = [[0.1, 0.5, np.nan], [0.3, 0.2, 0.9]]
TILES = [
    [Tile.of(np.full((5, 5), (3 * i + j) / 100), np.ones((5, 5), bool)) for j in range(3)]
    for i in range(2)
]
TWO = Alternative("▁a", 0, math.log(0.5)), Alternative(EVIL, 1, math.log(0.3))
TEN = tuple(Alternative(f"b{i}", i, math.log(0.5 / 2**i), i == 1) for i in range(10))
STEPS = [DecodeStep("▁a", 0, math.log(0.5), TWO, 0), DecodeStep(EVIL, 7, math.log(0.001), TEN, 0)]
PIECES = ("Haus", EVIL, "998 others")
SHARES = (0.6, 0.3, 0.1)
TARGETS = (0.9001, 0.0001, 0.0998)
SLOPES = (
    [0.6 - 1, 0.3, 0.1],
    [share - target for share, target in zip(SHARES, TARGETS, strict=True)],
)
CELLS = [
    [
        Cell(0.1, "10 %", "prev", f"layer 1, head 1\n{EVIL}"),
        Cell(0.5, "50 %", EVIL, "layer 1, head 2"),
    ],
    [Cell(None, "–", "sink", "layer 2, head 1"), Cell(0.3, "30 %", "next", "layer 2, head 2")],
]
SHADED = Marks(
    "", WAVE[:2], WAVE[2:], "#D55E00", [EVIL, "b"], [(0, 0), (0, 1)], values=np.array([0.1, 0.9])
)
NAMED = Marks("keys", WAVE[:2], WAVE[2:], "#D55E00", ["a", "b"], [(0, 0), (0, 1)], "diamond")
LEDGER = [
    LedgerRow("q·k", np.array([-4.0, 4, 0, 1, 2, 3])),
    LedgerRow("softmax", SIX, True, True),
    LedgerRow(EVIL, SIX, share=True, what_if=True),
]
TREE = (
    Branch("▁a", 0, None, 0.5, KEPT, False, "first"),
    Branch("▁b", 0, None, 1.0, WON, False, "second"),
    Branch("▁c", 0, None, 0.1, LOST, False, EVIL),
    Branch(EVIL, 1, 0, 0.4, KEPT, False, "fourth"),
    Branch("</s>", 1, 1, 1.0, WON, True, "fifth"),
)
FATES = {WON: "the best", KEPT: "kept", LOST: "given up"}
TARGET = (
    Column("<s>", "▁Das", 0.1, "▁Das", 0.9),
    Column("▁Das", "▁alte", 2.5, "▁Haus", 0.8),
    Column("▁alte", "</s>", 1.0, EVIL, 0.3),
)
CURVES = [
    Curve("a", [1, 2, 3], [0.1, 0.2, 0.1], "#999999"),
    Curve(EVIL, [1, 3], [0.1, 0.0], "#999999", "dash", 3),
]
MOVES = [StepMove("▁a", -2.5, "one"), StepMove("b", 0.25, "two"), StepMove("</s>", math.nan, EVIL)]
PAPER_SYMBOLS = Symbols("x", "m", "s", "w", "head", columns=False)
LECTURE = Symbols("a", "a", "α", "α̂", "b", columns=True)
WORDS = ("▁a", "▁b", "▁c", EVIL, "▁<s>", "▁f")
BOXES = (
    [Box("in", "embedding"), Box("a", EVIL, "encoder", True), Box("b", "+", None, True, 1)],
    [
        Box("out", "linear", shape="<8> → 9"),
        Box("c", "cross", "cross", True),
        Box("d", "+", None, True, 2),
    ],
)
SPAN = {
    "rotary": positions.Interval(28.0, 27.0, 29.5),
    "rotary-seed2": positions.Interval(27.5, 26.0, 28.5),
}
CURVE = ("line", "layer", "norm", "low", "high")


def difference() -> go.Figure:
    names = ("x", "A: y"), ("a", "b", EVIL)
    return difference_map(
        ROWS, OTHER, FEW, *names, np.array([0.5, np.nan]), 0.9, ("rows", "columns")
    )


def chart(
    kind: str, rows: list[tuple[Any, ...]], log: str = "", among: tuple[str, ...] = ()
) -> go.Figure:
    columns = CURVE[: len(rows[0])]
    drawn = Chart(kind, "x", "", columns, rows, log, " nats")  # type: ignore[arg-type]
    return study.draw(drawn, among, "#123456")


PICTURES: dict[str, Any] = {
    "heatmap": lambda: heatmap(DECODER, sums=True),
    "heatmap of a large cross": lambda: heatmap(CROSS, 520, scale="log"),
    "alignment": lambda:
        alignment_map(ROWS, ("a", EVIL, "c"), ("x", "y"), **LINKS, titles=("rows", "columns")),
    "difference": difference,
    "lines": lambda: lines([CROSS], query=1),
    "lines of two": lambda: lines([CROSS, replace(CROSS, head=1, weights=CROSS.weights[::-1])], mass=None),
    "keys of a query": lambda: strongest(DECODER, 2),
    "queries of a key": lambda: strongest(CROSS, 1, of="key"),
    "measures": lambda:
        measures_map([MeasureRow(EVIL, abs(SIGNED)), MeasureRow("e", SIGNED, True)], list("abcdef")),
    "shares": lambda: share_bars(["a", EVIL], ROWS[0, :2]),
    "parts": lambda: part_bars(["a", EVIL, "c"], np.array([0.5, -2.0, 0.0])),
    "overview": lambda: overview_spec(TILES, "cross", (1, 2), notes={(0, 1): EVIL}),
    "ordered": lambda: overview_spec(
        TILES, "cross", (1, 2), None, [[2, 0, 1], [1, 2, 0]],
        replace(Measure.of(NUMBERS), texts=[[f"{n:.1f}" for n in r] for r in NUMBERS])
    ),
    "pooled": lambda:
        pooled_spec(np.full((200, 100), 0.005, np.float32), np.ones((200, 100), bool), "encoder"),
    "printed": lambda:
        printed(marked(DECODER, 2, 1), ["Cross-attention", EVIL + "\u202eevil\u202c line\nbreak"]),
    "next token": lambda: next_token(STEPS, 1),
    "row": lambda: row_bars_spec(CROSS, 2),
    "quiet row": lambda: quiet(row_bars_spec(CROSS, 2)),
    "strips": lambda: strips_spec([Strip(EVIL, WAVE, "note", True), Strip("b", 10 * WAVE[:3])]),
    "joint strips": lambda:
        strips_spec([Strip("a", WAVE, EVIL), Strip("b", 10 * WAVE)], joint=True, across="head"),
    "vectors": lambda:
        vectors_spec(np.outer(WAVE, WAVE[:3]), ("die", "die", EVIL, "x"), WAVE[:3], ("k", "q"), 2),
    "matrices": lambda: matrices_spec([("W", np.outer(WAVE, WAVE[:3])), ("U", np.ones((256, 128)))]),
    "matrix": lambda: matrices_spec([("W", np.outer(WAVE, WAVE[:3]))]),
    "mask": lambda: mask_map(DECODER),
    "scores": lambda: score_map(DECODER),
    "weights": lambda: weight_map(replace(DECODER, weights=np.full((4, 4), 0.25, np.float32))),
    "padding": lambda:
        framed(padding_grid([BAD[:3], ("a", "<pad>", "<pad>")], np.tri(2, 3, 2, dtype=bool), 1, "red"), 0),
    "leak": lambda:
        lowered(heatmap(CROSS), 9).add_traces(leak_bars(CROSS, 300, visible=WAVE[:3], masked=WAVE[1:]).data),
    "leak bars": lambda: leak_bars(CROSS, 300, visible=np.array([0.25, 1, 1]), masked=np.array([0.75, 0, 0])),
    "diagram": lambda: anatomy.diagram(BOXES, ("3 ×", "2 ×"), "a", "c"),
    "lens": lambda: anatomy.lens(
        ("in", "out"), ((EVIL, "▁a"), ("▁b", "c")), ROWS[:, :2], ROWS[:, 1:] > 0.15, ("rank 2", "rank 1")
    ),
    "stream": lambda: anatomy.stream([(EVIL, ["input", "layer 1"], WAVE[:2]), ("b", ["input"], WAVE[2:3])]),
    "ranked": lambda: anatomy.ranked([EVIL, "b"], np.array([0.5, -0.25]), ["0.50", EVIL], "cosine"),
    "against target": lambda: against_target(PIECES, SHARES, TARGETS, 0),
    "gradient": lambda: gradient_bars(PIECES, *SLOPES, 0),
    "before and after": lambda: before_after([EVIL, "▁b", "c"], [0.6, 0.4, 0.0], [1.0, 0.0, 0.0], 1),
    "heads": lambda: head_grid(CELLS, "encoder", (1, 0), ink="#123456", falling=True),
    "many heads": lambda: head_grid([[Cell(0.2, "20 %", "prev", "")] * 11], "decoder", (0, 0)),
    "distances": lambda: distance_bars(np.arange(5) / 10, np.full(5, 0.2), "cross"),
    "plane": lambda:
        plane([SHADED, NAMED], ("a", EVIL), (2.0, 5.0), [(1.0, 3.0, EVIL)], ("10 %", "90 %")),
    "ledger": lambda: ledger_spec("decoder", WORDS, MASK, LEDGER, 1),
    "long ledger": lambda:
        ledger_spec("cross", [f"▁t{i}" for i in range(19)], np.ones(19, bool), [LedgerRow("q", np.ones(19))]),
    "lecture": lambda: lecture_spec("decoder", (EVIL, 4), WORDS, np.arange(6.0) - 2, SIX, MASK, LECTURE),
    "paper": lambda: lecture_spec("cross", (EVIL, 4), WORDS, np.arange(6.0) - 2, SIX, MASK, PAPER_SYMBOLS),
    "built row": lambda: inside.built_row("cross", WORDS, MASK, np.arange(6.0) - 2, SIX, (0, 2), [0.5]),
    "key plane": lambda:
        key_plane("encoder", WORDS[:4], np.outer(WAVE, [1.0, -0.5]) + 1, np.array([0.6, -0.8]), (0, 3)),
    "bits": lambda: bits_spec(("▁the", "▁the", EVIL, "</s>"), (3.25, 0.5, 17.0, 0.01)),
    "table": lambda: positions.table_map(np.outer(WAVE, WAVE), 513, "position", "dimension", left=2),
    "curves": lambda: positions.lines([1, 2], {EVIL: [0.0, 1.0], "c": [2.0, 3.0]}, ("x", "y")),
    "twins": lambda:
        positions.lines([0, 1], {"alibi": [0, 1], "new": [1, 2]}, ("x", "y"), str.upper, height=99),
    "dots": lambda: positions.dots(SPAN, "BLEU", lambda name: name + EVIL),
    "ways": lambda: paths(BAD, (4, 1)),
    "centres": lambda: with_centres(go.Figure(), np.array([2.5, 4.0, 40.0]), 2, 8),
    "search": lambda:
        search_tree(TREE, FATES, Beside("greedy", [0], [EVIL, "</s>"], ["one", "two"]), 3, ink="#123"),
    "later search": lambda: search_tree(TREE, FATES, first=1),
    "training": lambda: curves(CURVES, ("step", "rate"), 2),
    "panels": lambda: panels([Panel("loss", CURVES), Panel("norm", CURVES, 60, False, 3.0)], "step", 1.5),
    "panel": lambda: panels([Panel("loss", CURVES)], "step"),
    "shifted": lambda: shifted_right(TARGET, 1, ink="#123456"),
    "two ways": lambda: two_ways(TARGET, ("▁Das", "▁Haus", EVIL), 1),
    "moves": lambda: delta_bars(MOVES, 1),
    "controls": lambda: control_strip(-1.5, [0.25, -2.0], [EVIL, "one", "two"]),
    "study of curves": lambda:
        chart("curves", [(EVIL, 1, 0.2, 0.1, 0.5), (EVIL, 2, 3.0, None, None), ("b", 2, 4.0, 1.0, 5.0)], "y"),
    "study of dots": lambda:
        chart("dots", [(EVIL, "one", -2.0, -3.0, 1.0), ("b", "two", 1.5, 1.0, 2.0)], among=("b", EVIL)),
    "study of bars": lambda: chart("bars", [("cross-attention", EVIL, -2.0), ("b", "two", 1500)]),
    "study of a grid": lambda:
        chart("grid", [("layer 1", EVIL, -0.5), ("layer 1", "2", 1.0), ("layer 2", "2", None)]),
}  # fmt: skip


def drawn(name: str) -> go.Figure:
    picture = PICTURES[name]()
    return picture if isinstance(picture, go.Figure) else style.figure(picture)


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_looks_as_agreed_names_tokens_as_text_and_is_printed_under_its_caption(
    name: str,
):
    figure = drawn(name)
    values = json.loads(figure.to_json())
    layout = {each: value for each, value in values["layout"].items() if each != "template"}
    parts = {each: value for each, value in layout.items() if isinstance(value, dict | list)}
    parts["plain"] = {
        each: value
        for each, value in layout.items()
        if each not in parts and value != CLEAR.get(each)
    }
    traces = values["data"] if len(values["data"]) < 8 else [values["data"]]
    parts |= {str(i): each for i, each in enumerate([*traces, *values.get("frames", [])])}
    agrees(FILE, name, parts)

    written = " ".join(texts(parts))
    assert [sign for sign in ("<a", "</s>", "#0", "\u202e") if sign in written] == []
    assert "%{evil}" not in str([trace.get("hovertemplate") for trace in values["data"]])

    if name != "printed":
        copy = printed(figure, ["A caption", EVIL])
        height = figure.layout.height or 450
        (below,) = [
            annotation.text
            for annotation in copy.layout.annotations
            if annotation.name == "caption"
        ]
        assert below == "A caption<br>&lt;a href='x'&gt;"
        assert copy.layout.height == height + 42
        assert (
            copy.layout.margin.b
            == (80 if figure.layout.margin.b is None else figure.layout.margin.b) + 42
        )
        assert (copy.layout.paper_bgcolor, copy.layout.plot_bgcolor) == (PAPER, PAPER)
        assert (copy.layout.font.color, copy.layout.meta) == (INK, {"caption": ["A caption", EVIL]})
        assert not copy.frames
        page = copy.to_html(include_plotlyjs=False)
        assert page.count("</script>") == page.count("<script")


def texts(part: Any) -> list[str]:
    """All texts of a figure but its colours, and what it carries for other programs."""
    if isinstance(part, dict):
        looks = ("colorscale", "hovertemplate", "texttemplate", "meta", "marker", "line")
        kept = [
            each for key, each in part.items() if key not in looks and not key.endswith("color")
        ]
        return [text for each in kept for text in texts(each)]
    if isinstance(part, list):
        return [text for each in part for text in texts(each)]
    return [part] if isinstance(part, str) else []


def test_what_is_hidden_from_a_quiet_figure_are_its_numbers_alone():
    spec = {
        "data": [
            {"text": ["a", "12 %", ["0.5", "−3"]], "hovertext": "x"},
            {"hoverinfo": "skip", "text": None},
        ],
        "layout": {
            "annotations": [{"text": "L1"}, {"text": "1.00"}],
            "title": {"text": "row: Σ = 1.00"},
        },
        "frames": [{"layout": {"title": {"text": "next: Σ = 0.5"}}}, {"name": "bare"}],
    }
    assert quiet(spec) == {
        "data": [{"text": ["a", "", ["", ""]], "hoverinfo": "none"}, {"hoverinfo": "skip"}],
        "layout": {"annotations": [{"text": "L1"}, {"text": ""}], "title": {"text": "row"}},
        "frames": [{"layout": {"title": {"text": "next"}}}, {"name": "bare"}],
    }
