"""Whole source words: taken away from a kind of attention in every layer and head, and layer by layer."""

from __future__ import annotations

import numpy as np
import streamlit as st

from explorer.app.address import State
from explorer.app.controls import panel, pickers, plain, say
from explorer.app.maps import measures
from explorer.app.maps.measures import WholeWords
from explorer.app.server.opened import Opened
from explorer.app.shell import waiting
from explorer.figures.base import captions, labels
from explorer.figures.base.labels import number
from explorer.figures.maps.measures import MeasureRow, measures_map
from explorer.lenses.measures.effect import Way

_WAYS: dict[Way, str] = {"hidden": "hidden", "zeroed": "value zeroed", "mean": "mean value"}
_SEEING = (
    "All pieces of a word are taken away at once, for every query, in every head of every layer of this kind "
    "of attention. *Hidden*: their scores are −∞, and the other keys share the weight. *Value zeroed*: the "
    "weights stay, and nothing is added. *Mean value*: what the visible keys hold on average is added. *Left "
    "out of the text*: the text is another one, and later words move. Four questions, four answers. Taken "
    "from cross-attention, a word is still in what the encoder wrote for its neighbours."
)
_FORMULA = r"\Delta \log p = \log p(y_t \mid \text{without the word}) - \log p(y_t)"


def show(opened: Opened, now: State, kind: str, step: int) -> None:
    """Draws both maps; nothing for keys that are no source words."""
    if kind == "decoder":
        return
    way: Way = now.way  # type: ignore[assignment]
    with waiting.progress("Running the model again without each word") as tell:
        found = measures.whole_words(opened, kind, step, way, tell=tell)
    token = captions.quote(opened.translation.target_tokens[step])
    columns = labels.names(found.words)
    about = f"{captions.KIND_NAMES[kind]} · Δ log p of “{token}” in nats"
    st.markdown("#### The whole word, in every layer and head")
    say(told(found, columns, token))
    rows = [MeasureRow(f"word {_WAYS[each]}", found.everywhere[each], True) for each in _WAYS]
    rows.append(MeasureRow("word left out of the text", found.left_out, True))
    everywhere = "all pieces of each word taken away for every query, in every layer and head"
    _map("words", rows, columns, f"{about}, {everywhere} · {opened.asked.model}")
    st.markdown("#### The whole word, in one layer alone")
    pickers.switch("way", "The word is", _WAYS, way)
    layers = [MeasureRow(f"layer {labels.count(i)}", values, True) for i, values in enumerate(found.layers)]
    layers.append(MeasureRow("sum of the layers", found.layers.sum(0), True))
    layers.append(MeasureRow("all layers at once", found.everywhere[way], True))
    alone = f"each word {_WAYS[way]} in all heads of one layer"
    caveat = "the sum is not what happens in all layers at once"
    _map("words by layer", layers, columns, f"{about}, {alone}; {caveat} · {opened.asked.model}")


def _map(name: str, rows: list[MeasureRow], columns: list[str], caption: str) -> None:
    panel(
        name,
        lambda ink: measures_map(rows, columns, ink),
        caption,
        lambda: [["", *columns], *([row.name, *map(float, row.values)] for row in rows)],
        seeing=_SEEING,
        formula=_FORMULA,
        inked=True,
        scrolls=180 + 56 * len(columns),
    )


def told(found: WholeWords, columns: list[str], token: str) -> str:
    """The word that is needed most, by each way of taking it away."""
    named = {_WAYS[way]: values for way, values in found.everywhere.items()}
    named["left out"] = np.where(np.isfinite(found.left_out), found.left_out, np.inf)
    said = [
        f"{name}: **{plain(columns[int(np.argmin(values))])}** ({number(float(values.min()), '+.2f')})"
        for name, values in named.items()
        if np.isfinite(values).any()
    ]
    return f"“{plain(token)}” loses most without one word, by the way it is taken away: {'; '.join(said)}."
