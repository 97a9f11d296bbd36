"""Two positional encodings side by side: what each does to the scores of one word, said many times."""

from __future__ import annotations

import numpy as np
import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.encodings import ENCODINGS
from explorer.app.controls import inform, panel, pickers
from explorer.app.server import catalogue, models
from explorer.app.server.catalogue import twin_title as title
from explorer.app.server.runs import NoProgress, Request, traced
from explorer.figures.base import labels
from explorer.figures.pages.positions import table_map
from transformer.view import HeadView

COUNT = 32
_WORD, _TARGET = "house", "Haus"
_BOTH = (
    f"One word, said {COUNT} times, in the encoder of the twin that was trained with each encoding. All "
    "tokens are the same, so **whatever differs between two cells is the encoding's doing**: the scores of "
    "one head of the first layer, less their mean, which the softmax does not see. Both maps share one scale."
)
_NOTHING = 1e-3
"""Below this, differences are the rounding of float32."""
_ACTS = {
    "nowhere": "adds nothing anywhere",
    "embeddings": "adds a vector to each token, once, before the first layer",
    "rotation": "turns queries and keys in every layer",
    "scores": "adds to the scores of every layer",
}
_USUAL = ("sinusoidal", "rotary")


def show() -> None:
    now = session.current()
    st.markdown(_BOTH)
    chosen = (now.encoding or _USUAL[0], now.beside or _USUAL[1])
    places = st.columns(2, gap="large")
    found = {}
    for column, field, name in zip(places, ("encoding", "beside"), chosen, strict=True):
        with column:
            names = {each: title(each) for each in ENCODINGS}
            pickers.choose(f"together.{field}", "Encoding", names, name, field, texts=True)
            found[field] = _head(name, now)
    most = max(
        (float(np.abs(_moved(each)).max()) for each in found.values() if each is not None), default=1.0
    )
    for column, name, (field, view) in zip(places, chosen, found.items(), strict=True):
        with column:
            _one(field, name, view, most)


def _head(name: str, now: State) -> HeadView | None:
    """The head of a twin's first encoder layer that is asked for, or that places move most; None without a "
    "twin."""
    twin = models.known(f"{catalogue.TWINS}/{name}")
    if twin is None:
        return None
    run = traced(Request(twin, " ".join([_WORD] * COUNT), "greedy", _TARGET), NoProgress())
    heads = [run.head("encoder", 0, i) for i in range(run.config.n_heads)]
    asked = (now.twin_head or (0, -1))[1]
    return heads[asked] if 0 <= asked < len(heads) else max(heads, key=lambda each: float(_moved(each).std()))


def _moved(view: HeadView) -> np.ndarray:
    """(words, words) scores less their mean; the end of the text is another token and left out."""
    scores = view.scores[:-1, :-1]
    moved: np.ndarray = scores - scores.mean()
    return moved


def told(name: str, moved: np.ndarray) -> str:
    """Where an encoding acts, and whether its scores know more than the distance."""
    called = title(name)
    acts = f"**{called[:1].upper()}{called[1:]}** {_ACTS[ENCODINGS[name].acts]}."
    if np.abs(moved).max() < _NOTHING:
        return f"{acts} No score differs: this encoder sees a bag of words."
    half = len(moved) // 2
    back = [float(moved.diagonal(-distance).mean()) for distance in range(1, half)]
    nearest = 1 + int(np.argmax(back))
    share = float(np.mean([moved.diagonal(at).std() for at in range(1 - half, half)]) / moved.std())
    depends = (
        "The score depends on the distance alone: every diagonal is one colour."
        if share < _NOTHING
        else "The score depends on more than the distance: pairs of words that are equally far apart differ. "
        f"The spread within a distance is {labels.number(share)} of the spread of all scores."
    )
    itself = " The token itself scores higher still." if moved.diagonal().mean() > max(back) else ""
    return (
        f"{acts} {depends} Of the {half - 1} places before a token, this head scores the one {nearest} "
        f"before it highest.{itself}"
    )


def _one(field: str, name: str, view: HeadView | None, most: float) -> None:
    if view is None:
        inform(f"There is no model {catalogue.TWINS}/{name} here, so nothing can be computed.")
        return
    moved = _moved(view)
    st.markdown(told(name, moved))
    panel(
        f"together {field}",
        lambda: table_map(moved, 1, "query", "key").update_traces(zmin=-most, zmax=most),
        f"Scores of {labels.head_phrase(0, view.head)} less their mean, one word {COUNT} times · "
        f"encoder of {view.model}",
        alt=f"A map of {COUNT} by {COUNT} scores from {moved.min():.1f} to {moved.max():.1f}, {title(name)}.",
        formula=ENCODINGS[name].formula,
        seeing=ENCODINGS[name].what,
        audit=view.audit,
        derived=True,
        sentence=False,
    )
