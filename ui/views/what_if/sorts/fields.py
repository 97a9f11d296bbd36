"""The controls that sorts of change share, and what they need of the sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import streamlit as st

from figures.base import labels
from figures.base.captions import KIND_NAMES
from transformer import Translator
from transformer.interventions import Intervention
from transformer.interventions.base import PARTS
from transformer.model.sites import Side
from transformer.runs.translation import Translation
from ui.address import session
from ui.linked_view import Head
from ui.server import catalogue, runs
from ui.server.opened import Opened

EVERY = -1
"""The choice of every head, layer or step."""
SIDES: tuple[Side, Side] = ("encoder", "decoder")


@dataclass(frozen=True)
class Sort:
    """A sort of change."""

    label: str  # its name in the list
    says: str  # what it does, in one sentence
    # draws its controls; returns the change that they say, or None if something is missing. Raises ValueError
    # if there is no such change; the message says why.
    choose: Callable[[Opened], Intervention | None]


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


def head(opened: Opened, of_kind: str) -> Head:
    """Lets the visitor choose layer and head; the head that the page shows comes first."""
    layers, heads = catalogue.sizes(opened.asked.model)[of_kind]
    shown = getattr(session.current(), of_kind)
    layer = layer_of(layers, shown[0])
    return layer, one("Head", range(heads), [f"head {labels.count(i)}" for i in range(heads)], 110, shown[1])


def heads(opened: Opened, of_kind: str) -> tuple[int, int | None]:
    """The same, or every head of the layer, which is None."""
    layers, count = catalogue.sizes(opened.asked.model)[of_kind]
    shown = getattr(session.current(), of_kind)
    layer = layer_of(layers, shown[0])
    names = [*(f"head {labels.count(i)}" for i in range(count)), "every head"]
    chosen = one("Head", [*range(count), EVERY], names, 130, shown[1])
    return layer, None if chosen == EVERY else chosen


def side() -> Side:
    """Lets the visitor choose a side."""
    with st.container(width=130):
        return st.selectbox("Side", SIDES)


def layer_of(layers: int, first: int = 0) -> int:
    """Lets the visitor choose a layer."""
    return one("Layer", range(layers), [f"layer {labels.count(i)}" for i in range(layers)], 110, first)


def layers_of_side(opened: Opened, of_side: Side) -> int:
    """Number of layers of a stack."""
    return opened.translation.config.stacks[of_side].n_layers


def part(opened: Opened, of_side: Side) -> str:
    """Lets the visitor choose a sub-layer."""
    with st.container(width=220):
        names = opened.translation.config.stacks[of_side].sublayers
        return str(st.selectbox("Sub-layer", names, format_func=PARTS.__getitem__))


def number(label: str, value: float, low: float, high: float, step: float) -> float:
    """Lets the visitor choose a number."""
    with st.container(width=140):
        return float(st.number_input(label, low, high, value, step))


def translator(opened: Opened) -> Translator:
    """The model."""
    return catalogue.translator(opened.asked.model)


def unchanged(opened: Opened) -> Translation:
    """The run without changes, whose source is the text as typed."""
    return runs.translate(replace(opened.asked, changes=()), runs.Untold())


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
