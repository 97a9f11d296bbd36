"""Changes of weights and masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import streamlit as st

from explorer.app.sections.what_if.forms import fields
from explorer.app.sections.what_if.forms.fields import EVERY, Sort
from explorer.app.server.opened import Opened
from explorer.figures.base import labels
from transformer import interventions as do


def _row(opened: Opened) -> do.Intervention:
    run = opened.traced().translation
    kind, layer, head = fields.head(opened)
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


def _cell(opened: Opened, kind: str) -> list[tuple[int | None, int | None]]:
    rows = _counted(fields.names(opened.translation, kind)[0])
    query = fields.one("Query", range(len(rows)), rows)
    return [(query, _key(opened, kind)[0][1])]


def _key(opened: Opened, kind: str) -> list[tuple[int | None, int | None]]:
    columns = _counted(fields.names(opened.translation, kind)[1])
    return [(None, fields.one("Key", range(len(columns)), columns))]


class _Way(NamedTuple):
    """A way to change a mask: its name, whether it allows or forbids, and the cells, by name or chosen."""

    label: str
    what: Literal["allow", "forbid"]
    cells: str | Callable[[Opened, str], list[tuple[int | None, int | None]]]


_OWN = {
    "cell": _Way("hide one cell", "forbid", _cell),
    "key": _Way("hide a key from every query", "forbid", _key),
}
_TO_ITSELF = {
    "self": _Way("hide each token from itself", "forbid", "self"),
    "past": _Way("hide earlier tokens", "forbid", "past"),
}
_WAYS = {
    "cross": _OWN,
    "encoder": _OWN | _TO_ITSELF | {"future": _Way("hide later tokens (a causal mask)", "forbid", "future")},
    "decoder": _OWN
    | _TO_ITSELF
    | {
        "lift": _Way("lift the causal mask", "allow", "future"),
        "next": _Way("let the next token be seen", "allow", "next"),
        "seen": _Way("let one cell be seen", "allow", _cell),
        "shown": _Way("let every query see a key", "allow", _key),
    },
}
"""Ways to change a mask, by kind; only the decoder's hides anything that could be allowed."""


def _mask(opened: Opened) -> do.Intervention:
    kind = fields.kind(opened)
    ways = _WAYS[kind]
    with st.container(width=260):
        way = ways[str(st.selectbox("Mask", list(ways), format_func=lambda name: ways[name].label))]
    layers = opened.translation.config.sizes[kind][0]
    names = ["every layer", *(f"layer {labels.count(i)}" for i in range(layers))]
    layer = fields.one("in", [EVERY, *range(layers)], names, 130)
    cells = way.cells if isinstance(way.cells, str) else way.cells(opened, kind)
    return do.mask(kind, **{way.what: cells}, layer=None if layer == EVERY else layer)


SORTS = (
    Sort("move a row's weight", "One row of one head puts a given weight on one key.", _row),
    Sort("change a mask", "The mask holds in every head of the layer, before the softmax.", _mask),
)
