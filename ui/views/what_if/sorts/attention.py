"""Changes of weights and masks."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from figures.base import labels
from transformer import interventions as do
from ui.server import catalogue
from ui.server.opened import Opened
from ui.views.what_if.sorts import fields
from ui.views.what_if.sorts.fields import EVERY, Sort


def _row(opened: Opened) -> do.Intervention:
    run = opened.traced().translation
    kind = fields.kind()
    layer, head = fields.head(opened, kind)
    rows, columns = fields.names(run, kind)
    at = fields.cell(kind) or (0, 0)
    query = fields.one("Row of", range(len(rows)), _counted(rows), first=min(at[0], len(rows) - 1))
    seen = [i for i, visible in enumerate(run.mask(kind, layer, head)[query]) if visible]
    first = seen.index(at[1]) if at[1] in seen else 0
    key = fields.one("Weight to", seen, [_counted(columns)[i] for i in seen], first=first)
    weight = fields.number("Weight", 0.9, 0.0, 1.0, 0.1)
    now = float(run.weights(kind, layer, head)[query, key])
    st.caption(
        f"Now {now:.2f}; the other keys share {1 - weight:.2f} in their old proportions.", width="content"
    )
    return do.set_row(kind, layer, head, query, {key: weight})


def _counted(tokens: list[str]) -> list[str]:
    return [f"{labels.count(i)} · {name}" for i, name in enumerate(tokens)]


_CELLS = {
    "cell": "hide one cell",
    "key": "hide a key from every query",
    "self": "hide each token from itself",
    "past": "hide earlier tokens",
    "future": "hide later tokens (a causal mask)",
    "lift": "let every later token be seen",
    "next": "let the next token be seen",
}
_OF_KIND = {
    "encoder": ("cell", "key", "self", "past", "future"),
    "decoder": ("cell", "key", "self", "past", "lift", "next"),
    "cross": ("cell", "key"),
}


def _mask(opened: Opened) -> do.Intervention:
    kind = fields.kind()
    with st.container(width=260):
        what = str(st.selectbox("Mask", _OF_KIND[kind], format_func=_CELLS.__getitem__))
    layers = catalogue.sizes(opened.asked.model)[kind][0]
    options = [EVERY, *range(layers)]
    layer = fields.one(
        "in", options, ["every layer", *(f"layer {labels.count(i)}" for i in range(layers))], 130
    )
    at = None if layer == EVERY else layer
    if what in ("lift", "next"):
        return do.mask(kind, allow={"lift": "future"}.get(what, what), layer=at)
    return do.mask(kind, forbid=_PICKED[what](opened, kind) if what in _PICKED else what, layer=at)


def _cell(opened: Opened, kind: str) -> list[tuple[int | None, int | None]]:
    rows = _counted(fields.names(opened.translation, kind)[0])
    query = fields.one("Query", range(len(rows)), rows)
    return [(query, *cell[1:]) for cell in _key(opened, kind)]


def _key(opened: Opened, kind: str) -> list[tuple[int | None, int | None]]:
    columns = _counted(fields.names(opened.translation, kind)[1])
    return [(None, fields.one("Key", range(len(columns)), columns))]


_PICKED: dict[str, Callable[[Opened, str], list[tuple[int | None, int | None]]]] = {
    "cell": _cell,
    "key": _key,
}


SORTS = (
    Sort("move a row's weight", "One row of one head puts a given weight on one key.", _row),
    Sort("change a mask", "The mask holds in every head of the layer, before the softmax.", _mask),
)
