"""The controls that add a change."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from figures.base import labels
from figures.base.captions import KIND_NAMES
from transformer import interventions as do
from transformer.model.interventions.base import PARTS
from ui.address import session
from ui.server import catalogue
from ui.server.opened import Opened

_BY = {
    "zero": "zero",
    "mean": "its mean output",
    "uniform": "equal weights",
    "previous": "the token before",
    "first": "the first token",
}
_STACKS = {"encoder": ("self_attention", "feed_forward"), "decoder": tuple(PARTS)}


def add(opened: Opened) -> None:
    """Lets the visitor choose a change and add it."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="what-if-add"):
        with st.container(width=300):
            sort = st.selectbox("Change", list(_SORTS), format_func=lambda name: _SORTS[name][0])
        change = _SORTS[sort][1](opened)
        st.button("Add", type="primary", on_click=_add, args=(change,), key="what-if.add")


def _add(change: do.Intervention) -> None:
    now = session.current().changes
    if change not in now:
        session.change(**{**session.RUN, "changes": (*now, change), "step": session.current().step})


# --- one function for each sort of change -------------------------------------------------------------------


def _head(opened: Opened) -> do.Intervention:
    kind = _kind()
    layers, heads = catalogue.sizes(opened.asked.model)[kind]
    layer = _layer(layers)
    with st.container(width=110):
        head = st.selectbox("Head", range(heads), format_func=lambda i: f"head {labels.count(i)}")
    return do.ablate(kind, layer, head, _by(opened, kind))


def _whole_layer(opened: Opened) -> do.Intervention:
    kind = _kind()
    layers, heads = catalogue.sizes(opened.asked.model)[kind]
    return do.ablate(kind, _layer(layers), tuple(range(heads)), _by(opened, kind))


def _hide(opened: Opened) -> do.Intervention:
    names = labels.key_names(opened.translation.source_tokens)
    with st.container(width=180):
        at = st.selectbox("Source token", range(len(names)), format_func=names.__getitem__)
    return do.hide(at)


def _forbid(opened: Opened) -> do.Intervention:
    tokens = list(dict.fromkeys(opened.translation.target_tokens))
    with st.container(width=180):
        token = st.selectbox("Token", tokens, format_func=labels.display)
    return do.forbid(token)


def _positions(opened: Opened) -> do.Intervention:
    return do.no_positions(_side())


def _sublayer(opened: Opened) -> do.Intervention:
    side = _side()
    layer = _layer(catalogue.sizes(opened.asked.model)[side][0])
    with st.container(width=220):
        name = st.selectbox("Sub-layer", _STACKS[side], format_func=lambda part: PARTS[part])
    return do.drop_sublayer(side, layer, name)


_SORTS: dict[str, tuple[str, Callable[[Opened], do.Intervention]]] = {
    "head": ("switch off a head", _head),
    "layer": ("switch off all heads of a layer", _whole_layer),
    "hide": ("hide a source token from cross-attention", _hide),
    "forbid": ("forbid a token of the translation", _forbid),
    "positions": ("leave out the positions of a side", _positions),
    "sublayer": ("leave out a sub-layer", _sublayer),
}


def _kind() -> str:
    with st.container(width=230):
        return str(st.selectbox("Attention", catalogue.KINDS[::-1], format_func=KIND_NAMES.__getitem__))


def _side() -> str:
    with st.container(width=130):
        return str(st.selectbox("Side", ("encoder", "decoder")))


def _layer(layers: int) -> int:
    with st.container(width=110):
        chosen = st.selectbox("Layer", range(layers), format_func=lambda i: f"layer {labels.count(i)}")
    return int(chosen)


def _by(opened: Opened, kind: str) -> str:
    ways = dict(_BY)
    if catalogue.translator(opened.asked.model).means is None:
        del ways["mean"]
    if kind == "cross":
        del ways["previous"]
    with st.container(width=180):
        return str(st.selectbox("and give instead", list(ways), format_func=ways.__getitem__))
