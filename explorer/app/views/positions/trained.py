"""Learned encodings: the tables and biases of the trained twins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import inform, panel, pickers
from explorer.app.server import catalogue, measured, models
from explorer.app.views.positions.encodings import fitted_head, stack_of, stack_switch
from explorer.figures.base import labels
from explorer.figures.pages.positions import lines, seen_norms, table_map

if TYPE_CHECKING:
    from transformer.model import Network

REACH = 40
"""Largest distance at which a bias is drawn."""


def bias_curves(side: str, series: dict[str, np.ndarray], caption: str) -> None:
    """Draws bias against distance, with one curve for each head."""
    span = distances(side)
    panel(
        f"bias-{side}",
        lambda: lines(span, series, ("distance, key − query", "bias"), height=330),
        caption,
        alt=f"{', '.join(series)} at distances {span[0]} to {span[-1]}.",
        sentence=False,
    )


def distances(side: str) -> np.ndarray:
    """The distances that are drawn: both directions in the encoder, only back in the decoder."""
    return np.arange(-REACH, (REACH if side == "encoder" else 0) + 1)


def twin(name: str) -> Network | None:
    """The network of a twin; if the twin is not here, the page says so and the result is None."""
    full = f"{catalogue.TWINS}/{name}"
    if full not in catalogue.twins():
        inform(
            f"This page can show what the encoding learns once its twin is trained: there is no model {full} "
            "here."
        )
        return None
    return models.find(full).translator().model


def _parameter(network: Network, side: str) -> np.ndarray:
    """The one trained table of a stack's encoding."""
    stack = network.stack("encoder" if side == "encoder" else "decoder")
    table: np.ndarray = next(stack.positions.parameters()).numpy()
    return table


def learned(now: State) -> None:
    """Draws the learned table, and the rows that training did not reach."""
    network = twin("learned")
    if network is None:
        return
    side = stack_of(now)
    stack_switch(side, "trained")
    table = _parameter(network, side)
    left, right = st.columns(2)
    with left:
        panel(
            "table",
            lambda: table_map(table, 1, "position", "dimension"),
            f"Learned table of the {side}: {table.shape[0]} positions × {table.shape[1]} dimensions · "
            "positions/learned, as trained",
            alt="Rows of early positions have a pattern; late rows look like noise.",
            sentence=False,
        )
    with right:
        directions = table / np.linalg.norm(table, axis=1, keepdims=True)
        panel(
            "products",
            lambda: table_map(directions @ directions.T, 1, "position", "position"),
            f"Cosines between all rows of the {side}'s table · positions/learned, as trained",
            alt="Neighbouring early positions are alike; late positions are like no other.",
            sentence=False,
        )
    results = measured.shipped(measured.POSITIONS)
    if results is None or not results["table"]["models"]:
        return
    seen, norms = results["table"]["seen"], next(iter(results["table"]["models"].values()))
    reached = len(seen["encoder"])
    panel(
        "norms",
        lambda: seen_norms(norms, seen),
        f"Why learned tails fail: no training source has more than {reached} tokens, so later rows of the "
        "encoder's table were never trained, and the last rows before them rarely · positions/learned and "
        "its training data",
        alt="Norms of the rows fall to the random start where sentences stop.",
        sentence=False,
    )


def shaw(now: State) -> None:
    """Draws the vectors of relative keys, by distance."""
    network = twin("shaw")
    if network is None:
        return
    side = stack_of(now)
    stack_switch(side, "trained")
    vectors = _parameter(network, side)
    reach = vectors.shape[2] // 2
    layers, heads = vectors.shape[:2]
    layer, head = fitted_head(now.twin_head or (0, 0), (layers, heads))
    _head_of((layer, head), [(i, j) for i in range(layers) for j in range(heads)])
    where = f"{side}, {labels.head_phrase(layer, head)} · positions/shaw, as trained"
    left, right = st.columns(2)
    with left:
        panel(
            "vectors",
            lambda: table_map(vectors[layer, head], -reach, "distance", "dimension"),
            f"Vectors a by distance (key position − query position) · {where}",
            alt=f"{2 * reach + 1} vectors.",
            sentence=False,
        )
    with right:
        norms = np.linalg.norm(vectors[layer], axis=-1)
        series = {f"head {labels.count(i)}": norms[i] for i in range(heads)}
        panel(
            "vector-norms",
            lambda: lines(range(-reach, reach + 1), series, ("distance", "norm of a"), height=360),
            f"How strongly each distance can speak: norm of a, layer {labels.count(layer)} · "
            f"positions/shaw, {side}",
            alt="One curve for each head.",
            sentence=False,
        )


def _head_of(now: tuple[int, int], options: list[tuple[int, int]]) -> None:
    names = {each: labels.head_phrase(*each) for each in options}
    pickers.choose("positions.head", "Head", names, now, lambda each: session.change(twin_head=tuple(each)))
