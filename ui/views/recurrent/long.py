"""Long sentences: BLEU and loss by length, and alignment errors, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from figures.base import labels
from figures.base.bars import percent
from figures.pages.positions import Interval, dots, measured_groups, twin_name
from transformer.hub.files import size
from ui.address import State
from ui.controls import Table, how, panel, plain, seen
from ui.server import measured
from ui.views.recurrent.results import shown, sizes, unmeasured

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
_ROWS = {"predicted": "row that predicts the word", "read": "row that reads the word"}
_FILES = {"alignments.tsv": "the bundled sample", "europarl-en-de.tsv.gz": "Europarl"}


def show(_now: State) -> None:
    results = measured.shipped(measured.RECURRENT)
    if results is None or "lengths" not in results:
        unmeasured("recurrent")
        return
    st.markdown(scores(results))
    with st.container(key="recurrent-table"):
        st.markdown(models_table(results))
    st.caption(plain(_TABLE))
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("##### BLEU by length of the sentence")
        _lengths(results, "bleu", "value", "BLEU", "BLEU of greedy translations")
    with right:
        st.markdown("##### Loss by length of the sentence")
        what = "Loss of the reference, difference from the Transformer (below 0 is better)"
        _lengths(results, "loss", "difference", "nats per token, difference", what)
    st.markdown(f"{grows(results)} {falls(results)}")
    _alignments(results)
    st.caption(plain(sizes(results)))
    with st.container(horizontal=True, gap="small"):
        seen(_SEEING)
        how(results)


def _lengths(results: Json, measure: str, part: str, title: str, what: str) -> None:
    groups = results["lengths"]["groups"]
    names = [f"{each['first']} to {each['last']}" for each in groups]
    counts = "; ".join(f"{n}: {each['sentences']:,} sentences" for n, each in zip(names, groups, strict=True))
    found = {shown(name, results): cells for name, cells in series(groups, measure, part).items()}
    panel(
        f"recurrent length-{measure}",
        lambda: measured_groups(names, found, ("tokens of the source", title)),
        f"{what}, by length ({counts}), with 95 % intervals",
        lambda: table(names, found, title),
        alt=f"{what}. " + "; ".join(f"{twin_name(name)}: {_values(cells)}" for name, cells in found.items()),
        sentence=False,
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
            st.markdown(f"On {plain(name)} ({found['pairs']} pairs): {aligns(found, results)}")
            _errors(name, found, results)


def _errors(name: str, found: Json, results: Json) -> None:
    cells = {shown(model, results): _best(found, model) for model in found["predicted"]}
    panel(
        f"recurrent alignment {name}",
        lambda: dots(cells, "alignment error rate, %", 1, " %"),
        f"Alignment error against links made by hand, {name}: each model's better row, 95 % intervals; "
        "lower is better. A model with several heads has the advantage of a choice",
        alt="Alignment error. "
        + "; ".join(f"{twin_name(model)}: {cell.value:.1f} %" for model, cell in cells.items()),
        sentence=False,
    )


def _best(found: Json, model: str) -> Interval:
    """The lower of the two errors of a model, in per cent."""
    best = found[better(found, model)][model]["error"]["value"]
    return Interval(*(100 * best[end] for end in ("value", "low", "high")))


def gap(cell: Json, digits: int = 1) -> str:
    """A difference with its interval."""
    numbers = (labels.number(cell[end], f"+.{digits}f") for end in ("value", "low", "high"))
    value, low, high = numbers
    return f"{value} ({low} to {high})"


def holds_zero(cell: Json) -> bool:
    """Whether the interval of a difference holds 0."""
    return bool(cell["low"] <= 0 <= cell["high"])


def scores(results: Json) -> str:
    """Which twins differ from the Transformer on all sentences, and by how much."""
    reference, found = results["reference"], results["scores"]
    base = found[reference]["bleu"]["value"]
    cells = {each: values["bleu"]["difference"] for each, values in found.items() if each != reference}
    best = max(cells, key=lambda each: float(cells[each]["value"]))
    told = (
        f"On {results['sentences']:,} test sentences, the Transformer ({reference}) has "
        f"**{base['value']:.1f} BLEU**; the best recurrent twin, **{twin_name(best)}**, differs from it by "
        f"{gap(cells[best])}."
    )
    unsure = [twin_name(each) for each, cell in cells.items() if holds_zero(cell)]
    return told + (f" The interval includes 0 for {', '.join(unsure)}." if unsure else "")


def models_table(results: Json) -> str:
    """All models in Markdown: size, BLEU, and differences from the Transformer on short and long "
    "sentences."""
    groups = results["lengths"]["groups"]
    ends = groups[0], groups[-1]
    names = [f"{each['first']} to {each['last']} tokens" for each in ends]
    head = ("model", "parameters", "file", "BLEU", "difference", *(f"difference, {name}" for name in names))
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for each, facts in results["models"].items():
        parts = [results["scores"][each], *(group["models"][each] for group in ends)]
        lines.append(
            [
                shown(each, results),
                f"{facts['parameters'] / 1e6:.2f} M",
                size(facts["bytes"]),
                f"{parts[0]['bleu']['value']['value']:.1f}",
                *(gap(part["bleu"]["difference"]) if "difference" in part["bleu"] else "" for part in parts),
            ]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def grows(results: Json) -> str:
    """Which twins lose ground to the Transformer as sentences grow, in loss, and which gain it."""
    reference, groups = results["reference"], results["lengths"]["groups"]
    found: dict[str, list[str]] = {"behind": [], "gains": [], "": []}
    for each in groups[0]["models"]:
        if each != reference and each in groups[-1]["models"]:
            ends = (group["models"][each]["loss"]["difference"] for group in (groups[0], groups[-1]))
            found[_trend(*ends)].append(each)
    start = "From the shortest sentences to the longest, the loss of"
    told = []
    if found["behind"]:
        told.append(f"{start} **{_listed(found['behind'])}** falls behind the Transformer's.")
    if found["gains"]:
        told.append(f"{start} **{_listed(found['gains'])}** gains on the Transformer's.")
    if found[""]:
        told.append(f"For {_listed(found[''])}, the two intervals overlap, so nothing is claimed.")
    return " ".join(told)


def _trend(first: Json, last: Json) -> str:
    """Whether a difference in loss is larger at the end (behind) or smaller; empty if the intervals "
    "overlap."""
    if last["low"] > first["high"]:
        return "behind"
    return "gains" if last["high"] < first["low"] else ""


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def falls(results: Json) -> str:
    """Course of the difference in loss from short sentences to long ones: its intervals are narrow."""
    reference, groups = results["reference"], results["lengths"]["groups"]
    first, last = groups[0], groups[-1]
    ends = {
        each: [group["models"][each]["loss"]["difference"] for group in (first, last)]
        for each in first["models"]
        if each != reference and each in last["models"]
    }
    parts = [f"{twin_name(each)} {gap(a, 2)} → {gap(b, 2)}" for each, (a, b) in ends.items()]
    return (
        f"Difference in loss from the Transformer, sentences of {first['first']} to {first['last']} tokens → "
        f"those of {last['first']} to {last['last']} (nats per token): {'; '.join(parts)}."
    )


def aligns(found: Json, results: Json) -> str:
    """Alignment errors on one file of hand-made links, by the better row of each model."""
    parts, rows, heads = [], set(), 1
    for each in found["predicted"]:
        row = better(found, each)
        parts.append(f"{shown(each, results)} {percent(found[row][each]['error']['value']['value'])}")
        rows.add(row)
        heads = max(heads, found[row][each]["heads"])
    which = _ROWS[rows.pop()] if len(rows) == 1 else "better of its two rows"
    chosen = f", the Transformer by the best of its {heads} heads" if heads > 1 else ""
    return (
        f"{', '.join(parts)}: each by the {which}{chosen}. The diagonal alone has "
        f"{percent(found['diagonal'])}."
    )


def better(found: Json, model: str) -> str:
    """The kind of row by which a model aligns better."""
    rows = {row: float(found[row][model]["error"]["value"]["value"]) for row in _ROWS}
    return min(rows, key=rows.__getitem__)
