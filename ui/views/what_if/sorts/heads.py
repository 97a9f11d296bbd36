"""Changes of what heads give."""

from __future__ import annotations

import streamlit as st

from transformer import interventions as do
from ui.server.opened import Opened
from ui.views.what_if.sorts import fields
from ui.views.what_if.sorts.fields import Sort

_BY = {
    "zero": "zero",
    "mean": "its mean output",
    "uniform": "equal weights",
    "previous": "the previous token",
    "first": "the first token",
}


def _switch_off(opened: Opened) -> do.Intervention:
    kind = fields.kind(opened)
    return do.ablate(kind, *fields.heads(opened, kind), _by(opened, kind))


def _by(opened: Opened, kind: str) -> str:
    ways = dict(_BY)
    if fields.translator(opened).means is None:
        del ways["mean"]
    if kind == "cross":
        del ways["previous"]
    with st.container(width=180):
        return str(st.selectbox("What it gives instead", list(ways), format_func=ways.__getitem__))


def _scale(opened: Opened) -> do.Intervention:
    kind = fields.kind(opened)
    return do.scale(kind, *fields.heads(opened, kind), fields.number("Output times", 2.0, -100.0, 100.0, 0.5))


SORTS = (
    Sort(
        "switch off a head",
        "Zero removes the head's output. The mean keeps what the head gives for any sentence and removes "
        "what it says about this one.",
        _switch_off,
    ),
    Sort("scale a head", "The head's output is multiplied: 0 switches it off, −1 reverses it.", _scale),
)
