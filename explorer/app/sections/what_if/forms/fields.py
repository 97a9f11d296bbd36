"""The controls that ask for the fields of changes and places: one for each type of field."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from explorer.app.address import session
from explorer.app.server import runs
from explorer.app.server.opened import Opened
from explorer.figures.base import labels
from explorer.figures.base.captions import KIND_NAMES
from transformer import Translator
from transformer import interventions as do
from transformer.config import Side, SublayerName
from transformer.interventions import PARTS, Intervention
from transformer.run import Translation

EVERY = -1
"""The choice of every head, layer or step."""
SIDES: tuple[Side, Side] = ("encoder", "decoder")
Given = dict[str, Any]
"""What was chosen for the fields before."""
_BY = {
    "zero": "zero",
    "mean": "its mean output",
    "uniform": "equal weights",
    "previous": "the previous token",
    "first": "the first token",
}


@dataclass(frozen=True)
class Sort:
    """A sort of change."""

    label: str  # its name in the list
    says: str  # what it does, in one sentence
    # draws its controls; returns the change that they say, or None if something is missing. Raises ValueError
    # if there is no such change; the message says why.
    choose: Callable[[Opened], Intervention | None]


def form(sort: Any) -> Callable[[Opened], Intervention]:
    """Asks for every field of a change that has a control in `CONTROLS`; the others keep their default."""

    def choose(opened: Opened) -> Intervention:
        given: Given = {}
        for name in sort.fields:
            if name in CONTROLS:
                given[name] = CONTROLS[name](opened, given)
        change: Intervention = sort(**given)
        return change

    return choose


def head(opened: Opened) -> tuple[str, int, int]:
    """Lets the visitor choose a head: its kind, layer and number."""
    given: Given = {"kind": kind(opened)}
    given["layer"] = _layer(opened, given)
    return given["kind"], given["layer"], _head(opened, given)


def one(label: str, options: Sequence[int], names: Sequence[str], width: int = 180, first: int = 0) -> int:
    """Lets the visitor choose one of several numbers by its name."""
    named = dict(zip(options, names, strict=True))
    with st.container(width=width):
        return int(st.selectbox(label, list(named), index=first, format_func=named.__getitem__))


def kind(opened: Opened) -> str:
    """Lets the visitor choose a kind of the model's attention; the one that the page shows comes first."""
    kinds, asked = opened.kinds[::-1], session.current().kind or "cross"
    with st.container(width=230):
        shown = kinds.index(asked) if asked in kinds else 0
        return str(st.selectbox("Attention", kinds, index=shown, format_func=KIND_NAMES.__getitem__))


def _layer(opened: Opened, given: Given) -> int:
    if "side" in given:
        return layer_of(opened.translation.config.stacks[given["side"]].n_layers)
    kind = given["kind"]
    return layer_of(opened.translation.config.sizes[kind][0], getattr(session.current(), kind)[0])


def _head(opened: Opened, given: Given, every: bool = False) -> int:
    kind = given["kind"]
    heads = range(opened.translation.config.sizes[kind][1])
    options, names = [*heads, *[EVERY] * every], [f"head {labels.count(i)}" for i in heads]
    shown = getattr(session.current(), kind)[1]
    return one("Head", options, [*names, *["every head"] * every], 130 if every else 110, shown)


def _heads(opened: Opened, given: Given) -> int | None:
    chosen = _head(opened, given, every=True)
    return None if chosen == EVERY else chosen


def _by(opened: Opened, given: Given) -> str:
    ways = dict(_BY)
    if translator(opened).means is None:
        del ways["mean"]
    if given["kind"] == "cross":
        del ways["previous"]
    with st.container(width=180):
        return str(st.selectbox("What it gives instead", list(ways), format_func=ways.__getitem__))


def _source_token(opened: Opened, _given: Given) -> int:
    words = typed(opened)
    return one("Source token", range(len(words)), labels.names(words))


def _part(opened: Opened, given: Given) -> SublayerName:
    with st.container(width=220):
        parts = opened.translation.config.stacks[given["side"]].sublayers
        return st.selectbox("Sub-layer", parts, format_func=PARTS.__getitem__)


def sublayer(opened: Opened) -> tuple[Side, int, SublayerName]:
    """Lets the visitor choose a sub-layer."""
    given: Given = {"side": side()}
    given["layer"] = _layer(opened, given)
    return given["side"], given["layer"], _part(opened, given)


def norm(opened: Opened) -> Intervention:
    """Lets the visitor choose a norm that is left out."""
    of_side, pre = side(), opened.translation.config.norm == "pre"
    places = opened.translation.config.stacks[of_side].passed()
    names = [f"layer {labels.count(each.layer)}, {PARTS[each.name]}" for each in places]
    at = one("Norm", range(len(places) + pre), [*names, *[f"at the end of the {of_side}"] * pre], 280)
    return do.drop_norm(of_side, *((places[at].layer, places[at].name) if at < len(places) else ()))


def side() -> Side:
    """Lets the visitor choose a side."""
    with st.container(width=130):
        return st.selectbox("Side", SIDES)


def layer_of(layers: int, first: int = 0) -> int:
    """Lets the visitor choose a layer."""
    return one("Layer", range(layers), [f"layer {labels.count(i)}" for i in range(layers)], 110, first)


def number(label: str, value: float, low: float, high: float, step: float) -> float:
    """Lets the visitor choose a number."""
    with st.container(width=140):
        return float(st.number_input(label, low, high, value, step))


def translator(opened: Opened) -> Translator:
    """The model."""
    return opened.source.translator()


def typed(opened: Opened) -> tuple[str, ...]:
    """The source tokens as typed, without the end."""
    return unchanged(opened).source_tokens[:-1]


def unchanged(opened: Opened) -> Translation:
    """The run without changes, whose source is the text as typed."""
    return runs.translate(replace(opened.asked, changes=()))


def names(run: Translation, kind: str) -> tuple[list[str], list[str]]:
    """Names of the queries and keys of a run."""
    source, read, written = map(
        labels.names, (run.source_tokens, run.decoder_input_tokens, run.target_tokens)
    )
    return {"encoder": (source, source), "decoder": (read, read), "cross": (written, source)}[kind]


def cell(of_kind: str) -> tuple[int, int] | None:
    """The query and the key at the cursor, from 0; None before the visitor has chosen a key."""
    now = session.current()
    row = now.source if of_kind == "encoder" else now.step
    column = now.source if of_kind == "cross" else now.key
    return None if row is None or column is None else (row, column)


def step_names(tokens: Sequence[str]) -> list[str]:
    """Names of steps with the tokens written there."""
    return [f"{labels.count(i)} · {piece}" for i, piece in enumerate(labels.pieces(tokens))]


CONTROLS: dict[str, Callable[[Opened, Given], Any]] = {
    "kind": lambda opened, _given: kind(opened),
    "layer": _layer,
    "head": _heads,
    "by": _by,
    "factor": lambda _opened, _given: number("Output times", 2.0, -100.0, 100.0, 0.5),
    "temperature": lambda _opened, _given: number("Temperature", 2.0, 0.001, 1000.0, 0.5),
    "position": _source_token,
    "side": lambda _opened, _given: side(),
    "sublayer": _part,
}
"""What asks for a field."""
