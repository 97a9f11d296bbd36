"""The page of one kind of attention: all its heads, the selected one large, the row of the cursor as bars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from figures import labels, overview_spec, pooled_heatmap, row_bars_spec
from figures.bars import percent
from ui import linked_view, models, state, widgets
from ui.explorer import Scene, chosen, explorer, head
from ui.linked_view import Layout
from ui.widgets import Opened

_STATS = (
    ("aer", "alignment error {}"),
    ("previous", "points at the previous token in {} of the rows"),
    ("same", "points at the token itself in {} of the rows"),
    ("next", "points at the next token in {} of the rows"),
    ("first", "points at the first token in {} of the rows"),
    ("eos_mass", "{} of its weight rests on </s>"),
)


_ORDERS = {
    "": "number",
    "aer": "alignment error",
    "previous": "share on the previous token",
    "same": "share on the token itself",
    "next": "share on the next token",
    "first": "share on the first token",
    "eos_mass": "weight on </s>",
    "entropy": "entropy",
}


@dataclass(frozen=True)
class KindPage:
    """What differs between the three pages.

    Attributes:
        kind: encoder, decoder or cross.
        strips: the token strips shown.
        cursor: what the slider moves: `step` or `source`.
        note: what to notice, under the picture.
        seeing: the explanation, at most 60 words.
        formula: LaTeX.
    """

    kind: str
    strips: tuple[str, ...]
    cursor: str
    note: str
    seeing: str
    formula: str

    @property
    def layout(self) -> Layout:
        """The linked view of the page."""
        plots = ("overview", self.kind, "row")
        return Layout(self.kind, "page", self.strips, plots, self.kind, self.cursor)


def show(
    page: KindPage, opened: Opened, fade: bool = True, controls: Callable[[], None] | None = None
) -> None:
    """Draws the page of a kind for one sentence."""

    def below() -> None:
        heads, order, explanation = st.columns([1, 1, 2], gap="small", vertical_alignment="center")
        with heads:
            widgets.head_picker(page.kind, opened.asked.model)
        with order:
            _order_picker(opened, page.kind)
        with explanation:
            widgets.seen("What am I seeing?", page.seeing, page.formula)
        st.markdown(page.note)
        if models.is_long(opened.translation):
            _whole(page.kind, opened)
        if controls is not None:
            controls()

    scene = Scene(
        page.layout, opened, (page.kind,), lambda: _extra(page, opened), below, fade=fade, largest=520
    )
    explorer(scene)


def _extra(page: KindPage, opened: Opened) -> dict[str, dict[str, Any]]:
    view = head(opened, page.kind)
    follows = "source" if page.kind == "encoder" else "step"
    row = linked_view.bars_feed(
        opened.trace,
        row_bars_spec(view),
        follows,
        "The row of the cursor",
        "",
        "weights of one row, from 0 to 1",
        230,
    )
    return {"overview": _overview(page, opened), "row": {**row, "hue": page.kind}}


def _overview(page: KindPage, opened: Opened) -> dict[str, Any]:
    tiles = models.overview(opened.asked, opened.translation, page.kind)
    layers, heads = len(tiles), len(tiles[0])
    notes = {
        (i, j): note
        for i in range(layers)
        for j in range(heads)
        if (note := head_note(opened, page.kind, i, j))
    }
    tile = tiles[0][0]
    pooled = f" · each cell the maximum over {tile.rows}×{tile.columns} cells" if tile.pooled else ""
    order = heads_in_order(opened, page.kind, state.current().order)
    figure = overview_spec(tiles, page.kind, chosen(page.kind), notes, order)
    sorted_by = "" if order is None else f" · in each layer by {_ORDERS[state.current().order or '']}"
    caption = (
        f"weights, colour from 0 to 1{pooled} · from a verified trace{sorted_by} · click a tile to open it"
    )
    return linked_view.overview_feed(
        opened.trace, figure, page.kind, f"All heads, {layers} layers × {heads}", caption
    )


def heads_in_order(opened: Opened, kind: str, statistic: str | None) -> list[list[int]] | None:
    """For each layer its heads ordered by a statistic of `heads.json`; None where it is not known.

    Errors and entropies go up, shares go down: what stands out comes first.
    """
    facts = models.facts(opened.asked.model).get("heads", {}).get(kind)
    if (
        not facts
        or statistic is None
        or any(head.get(statistic) is None for layer in facts for head in layer)
    ):
        return None
    sign = 1 if statistic in {"aer", "entropy"} else -1
    return [sorted(range(len(layer)), key=lambda i: sign * layer[i][statistic]) for layer in facts]


def _order_picker(opened: Opened, kind: str) -> None:
    known = [name for name in state.ORDERS if heads_in_order(opened, kind, name) is not None]
    if not known:
        return
    now = state.current().order if state.current().order in known else None
    options = ["", *known]
    st.selectbox(
        "Order of the heads",
        options,
        index=options.index(now or ""),
        format_func=lambda name: f"heads by {_ORDERS[name]}",
        label_visibility="collapsed",
        **widgets.control("order", now or "", lambda name: state.change(order=name or None)),
    )


def head_note(opened: Opened, kind: str, layer: int, head_index: int) -> str:
    """What `heads.json` knows of a head, in one line: the two facts that stand out most."""
    facts = models.facts(opened.asked.model).get("heads", {}).get(kind)
    if not facts:
        return ""
    stats = facts[layer][head_index]
    told = [(name, text.format(percent(stats[name]))) for name, text in _STATS if stats.get(name) is not None]
    aer = [text for name, text in told if name == "aer"]
    rest = sorted((each for each in told if each[0] != "aer"), key=lambda each: -stats[each[0]])
    return "\n".join([*aer, *(text for _, text in rest)][:2])


def _whole(kind: str, opened: Opened) -> None:
    weights, mask = models.whole(opened.translation, kind, chosen(kind))
    name = labels.head_phrase(*chosen(kind))
    st.plotly_chart(
        pooled_heatmap(weights, mask, kind, 420),
        key=f"whole.{kind}",
        width="content",
        alt=f"Overview of the whole matrix of {name}, pooled",
    )
    st.caption("The whole matrix; above is the window around the cursor. Move the cursor to move the window.")
