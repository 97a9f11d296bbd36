"""Perplexity on text that the model has not read, beside that of an n-gram model of the same pieces."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from figures.base import style
from figures.pages.language.intervals import Dots, dots
from ui.controls.export import Table
from ui.controls.panel import panel
from ui.controls.text import command, plain
from ui.views.language_model.study.shipped_part import Json, known, measured

MODEL, NGRAM, LONGER = "language model", "n-gram", "longer n-gram"
LOOKS = {MODEL: (style.POSITIVE, "circle"), NGRAM: (style.NEGATIVE, "square")}
UNITS = {"per_word": "per word", "per_piece": "per piece"}
_SENTENCES = {"heldout": "held-out sentences", "test": "test sentences"}
"""The usual files by their names."""
_SEEING = (
    "Perplexity is e to the mean surprisal in nats: the number of equally probable words among which the "
    "model seems to choose. White space separates words, and the end of each sentence counts as one more, so "
    "models with other pieces can be compared. Lower is better. Whiskers are 95 % intervals over sentences; "
    "the difference is paired, so it is more certain than the whiskers suggest."
)


def show(model: str) -> None:
    """Draws the figure, with the command that counts its numbers."""
    found = known(model, "perplexity")
    if found is None:
        return
    st.markdown(told(found))
    caption = (
        f"Perplexity per word · modified Kneser–Ney model of order {found['order']}, same pieces, counted on "
        f"{found['counted']['sentences']:,} sentences of the training text · {measured(model, found)}"
    )
    panel("perplexity", lambda: _figure(found), caption, lambda: table(found), seeing=_SEEING, sentence=False)
    with st.popover("Which command counts this?", type="tertiary", icon=":material/terminal:"):
        st.code(command(found["command"]), language="sh", wrap_lines=True)


def told(found: Json) -> str:
    """The perplexity of both models on each text, and their difference."""
    orders = found["order"], found["longer_order"]
    return " ".join(_told(path, each, orders) for path, each in found["files"].items())


def _told(path: str, file: Json, orders: tuple[int, int]) -> str:
    own, other, longer = (file["per_word"][name]["value"]["value"] for name in (*LOOKS, LONGER))
    gap = file["per_word"][MODEL]["difference"]
    chance = ", which may be chance" if gap["low"] <= 0 <= gap["high"] else ""
    return (
        f"On {file['texts']:,} {plain(name_of(path))}, the perplexity per word is "
        f"**{own:.1f}**, and {other:.1f} for the n-gram model of order {orders[0]}: a difference of "
        f"{signed(gap['value'])} ({signed(gap['low'])} to {signed(gap['high'])}){chance}. With order "
        f"{orders[1]}, the n-gram model reaches {longer:.1f}."
    )


def signed(value: float) -> str:
    """A difference with its sign."""
    return f"{value:+.1f}".replace("-", "−")


def name_of(path: str) -> str:
    """The sentences of a file as visitors read of them."""
    name = path.rpartition("/")[2].partition(".")[0]
    return _SENTENCES.get(name, f"sentences of “{name}”")


def _figure(found: Json) -> go.Figure:
    files = found["files"]
    rows = [f"{name_of(path)} · {each['words']:,} words" for path, each in files.items()]
    lines = [_dots(name, list(files.values())) for name in LOOKS]
    return dots(rows, lines, "perplexity per word", None, percent=False)


def _dots(name: str, files: list[Json]) -> Dots:
    cells = [each["per_word"][name]["value"] for each in files]
    notes = [f"{name}: {each['value']:.1f} ({each['low']:.1f} to {each['high']:.1f})" for each in cells]
    return Dots(name, cells, notes, *LOOKS[name])


def table(found: Json) -> Table:
    """Both perplexities of both models with their intervals, for CSV."""
    rows = [
        (name_of(path), name, unit, *each[key][name]["value"].values())
        for path, each in found["files"].items()
        for key, unit in UNITS.items()
        for name in (*LOOKS, LONGER)
    ]
    return [("text", "model", "unit", "perplexity", "low", "high"), *rows]
