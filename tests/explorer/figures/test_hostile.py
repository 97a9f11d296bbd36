"""Tokens that look like markup, colours, templates or formulas are text in every figure that names tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from head_views import view

from explorer.figures import heatmap, lines, strongest
from explorer.figures.base.strips import Strip, strips
from explorer.figures.maps.alignment import alignment_map
from explorer.figures.maps.difference import difference_map, merged_names
from explorer.figures.pages.masks import leak_bars, mask_map, padding_grid, score_map, weight_map
from explorer.figures.pages.recurrent import paths
from explorer.figures.pages.training.lesson import Column, two_ways

NAMES = ("</s>", "<a href='x'>", "#000001", "&lt;", "%{evil}", "$x$", "", "▁")
SIZE = len(NAMES)
HEAD, EYE, ONES = view("encoder", NAMES, NAMES), np.eye(SIZE), np.ones(SIZE)
MERGED = merged_names(NAMES, NAMES, tuple((i, i) for i in range(SIZE)))
WHOLE = np.ones((SIZE, SIZE), bool)
FIGURES: dict[str, Callable[[], Any]] = {
    "heatmap": lambda: heatmap(HEAD),
    "lines": lambda: lines([HEAD]),
    "strongest": lambda: strongest(HEAD, 0),
    "strips": lambda: strips([Strip(name, ONES, name) for name in NAMES]),
    "alignment": lambda: alignment_map(EYE, NAMES, NAMES, {(0, 0)}, set(), set(), ("rows", "columns")),
    "difference": lambda: difference_map(EYE, 0 * EYE, WHOLE, MERGED, MERGED, ONES, 1, ("", "")),
    "mask": lambda: mask_map(HEAD),
    "scores": lambda: score_map(HEAD),
    "weights": lambda: weight_map(HEAD),
    "padding": lambda: padding_grid([NAMES], WHOLE[:1], 0, "black"),
    "leak": lambda: leak_bars(HEAD, 300, visible=ONES, masked=0 * ONES),
    "paths": lambda: paths(NAMES, (0, 3)),
    "lesson": lambda: two_ways([Column(name, name, 1.0, name, 0.3) for name in NAMES], NAMES, 0),
}


def texts(part: Any) -> list[str]:
    """All texts of a figure but its colours, and what it carries for other programs."""
    if isinstance(part, dict):
        looks = ("color", "fillcolor", "bgcolor", "colorscale", "hovertemplate", "texttemplate", "meta")
        return [text for key, each in part.items() if key not in looks for text in texts(each)]
    if isinstance(part, Sequence) and not isinstance(part, str):
        return [text for each in part for text in texts(each)]
    return [part] if isinstance(part, str) else []


@pytest.mark.parametrize("name", FIGURES)
def test_tokens_cannot_become_markup_colours_or_templates(name: str) -> None:
    figure = json.loads(FIGURES[name]().to_json())
    written = " ".join(texts(figure))
    assert "&lt;a href" in written
    assert [sign for sign in ("<a", "</s>", "#0") if sign in written] == []
    assert "%{evil}" not in str([trace.get("hovertemplate") for trace in figure["data"]])
