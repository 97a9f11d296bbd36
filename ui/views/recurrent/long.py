"""Long sentences: BLEU and loss by length, and alignment errors, with intervals."""

from __future__ import annotations

from typing import Any

import streamlit as st

from figures.base import labels
from figures.pages.positions import Interval, dots, measured_groups, twin_name
from ui.address.state import State
from ui.controls import pickers
from ui.controls.export import Table
from ui.controls.text import plain
from ui.server import measured
from ui.views.recurrent import drawn, told

Json = dict[str, Any]
_SEEING = (
    "A recurrent decoder hands on one state from word to word. Before attention, this state carried the "
    "whole source too, and long sentences suffered (Cho et al. 2014). With attention, the decoder may look "
    "back at each source word; only what it has written is in the state alone. If the state were too small "
    "for that, the twins would fall behind as sentences grow."
)
_TABLE = (
    f"Differences in BLEU from the Transformer, on all sentences, on the shortest and on the longest, with "
    f"95{labels.PER_CENT} intervals of the paired bootstrap; if an interval includes 0, nothing is claimed."
)
_FILES = {"alignments.tsv": "the bundled sample", "europarl-en-de.tsv.gz": "Europarl"}


def show(_now: State) -> None:
    """Draws the section."""
    results = measured.shipped(measured.RECURRENT)
    if results is None or "lengths" not in results:
        drawn.unmeasured("recurrent")
        return
    st.markdown(told.scores(results))
    with st.container(key="recurrent-table"):
        st.markdown(told.table(results))
    st.caption(plain(_TABLE))
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("##### BLEU by length of the sentence")
        _lengths(results, "bleu", "value", "BLEU", "BLEU of greedy translations")
    with right:
        st.markdown("##### Loss by length of the sentence")
        what = "Loss of the reference, difference from the Transformer (below 0 is better)"
        _lengths(results, "loss", "difference", "nats per token, difference", what)
    st.markdown(f"{told.grows(results)} {told.falls(results)}")
    _alignments(results)
    st.caption(plain(told.sizes(results)))
    with st.container(horizontal=True, gap="small"):
        pickers.seen("What am I seeing?", _SEEING)
        drawn.how(results)


def _lengths(results: Json, measure: str, part: str, title: str, what: str) -> None:
    groups = results["lengths"]["groups"]
    names = [f"{each['first']} to {each['last']}" for each in groups]
    counts = "; ".join(f"{n}: {each['sentences']:,} sentences" for n, each in zip(names, groups, strict=True))
    found = {told.shown(name, results): cells for name, cells in series(groups, measure, part).items()}
    drawn.draw(
        f"length-{measure}",
        lambda: measured_groups(names, found, ("tokens of the source", title)),
        f"{what}, by length ({counts}), with 95 % intervals",
        "; ".join(f"{twin_name(name)}: {_values(cells)}" for name, cells in found.items()),
        lambda: table(names, found, title),
    )


def series(groups: list[Json], measure: str, part: str) -> dict[str, list[Interval | None]]:
    """A value, or a difference, at every length by model."""
    found = {
        name: [each["models"].get(name, {}).get(measure, {}).get(part) for each in groups]
        for name in groups[0]["models"]
    }
    return {
        name: [None if cell is None else Interval(**cell) for cell in cells]
        for name, cells in found.items()
        if any(cells)
    }


def _values(cells: list[Interval | None]) -> str:
    return ", ".join("none" if cell is None else f"{cell.value:.2f}" for cell in cells)


def table(names: list[str], found: dict[str, list[Interval | None]], title: str) -> Table:
    """The values with their intervals, for CSV."""
    rows = [
        (model, name, cell.value, cell.low, cell.high)
        for model, cells in found.items()
        for name, cell in zip(names, cells, strict=True)
        if cell is not None
    ]
    return [("model", "tokens", title, "low", "high"), *rows]


def _alignments(results: Json) -> None:
    if not results.get("alignments"):
        return
    st.markdown("##### Attention as a word aligner")
    for column, (file, found) in zip(st.columns(2, gap="large"), results["alignments"].items(), strict=False):
        name = next((text for end, text in _FILES.items() if file.endswith(end)), file)
        with column:
            st.markdown(f"On {plain(name)} ({found['pairs']} pairs): {told.aligns(found, results)}")
            _errors(name, found, results)


def _errors(name: str, found: Json, results: Json) -> None:
    cells = {told.shown(model, results): _best(found, model) for model in found["predicted"]}
    drawn.draw(
        f"alignment {name}",
        lambda: dots(cells, "alignment error rate, %", 1, " %"),
        f"Alignment error against links made by hand, {name}: each model's better row, 95 % intervals; "
        "lower is better. A model with several heads has the advantage of a choice",
        "; ".join(f"{twin_name(model)}: {cell.value:.1f} %" for model, cell in cells.items()),
    )


def _best(found: Json, model: str) -> Interval:
    """The lower of the two errors of a model, in per cent."""
    best = found[told.better(found, model)][model]["error"]["value"]
    return Interval(*(100 * best[end] for end in ("value", "low", "high")))
