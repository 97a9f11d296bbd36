"""How much a model's loss needs each head, what predicts it, and how far heads can be pruned."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from figures.base import labels
from figures.base.captions import KIND_NAMES
from figures.maps.measures import curves
from figures.pages.heads import Cell, head_grid
from lab.heads.measures import STATISTICS
from lenses.measures.agreement import agreement
from transformer.model.sites import Head
from transformer.storage.description import IMPORTANCE_FILE
from ui.address import State, session
from ui.controls import Table, how, inform, panel, text
from ui.server import catalogue, measured

Json = dict[str, Any]
_SEEING = (
    "The loss of given translations, in nats a token, is measured with all heads, and then without one head: "
    "what it writes is replaced by its mean over many sentences, or by zero. A rise says that the others "
    "cannot make up for it at once. A head without a rise may still do work that others do too. The "
    "gradient measure (Michel et al. 2019) asks how steeply the loss changes with the head's output, for all "
    "heads in one pass."
)
_FORMULA = (
    r"\Delta_h = \mathcal{L}_{\text{without } h} - \mathcal{L}, \qquad "
    r"I_h = \mathbb{E}_x \left|\, \partial \mathcal{L}(x) / \partial \xi_h \,\right|"
)
_NAMES = {"mean": "its mean output", "zero": "zero"}
_LABELS = {each.name: each.label for each in STATISTICS} | {"aer": "alignment error"}


def shipped(model: str) -> Json:
    """Content of a model's `importance.json`; empty if the model has none."""
    return measured.described(model, IMPORTANCE_FILE)


def show(model: str, kind: str, now: State) -> None:
    found = shipped(model)
    if not found:
        inform(
            "Importance was not measured for this model. `python -m lab importance --model … --data …` "
            f"measures it and writes {IMPORTANCE_FILE} into its directory."
        )
        return
    by = "mean" if "mean" in found["alone"] else "zero"
    grid = found["alone"][by][kind]
    st.markdown(told(found, grid, kind, by))
    head: Head = getattr(now, kind)
    panel(
        "importance",
        lambda ink: head_grid(_cells(found, kind, by), kind, head, ink),
        f"{KIND_NAMES[kind]} · rise of the loss in nats a token if a head's output is replaced by "
        f"{_NAMES[by]} · {found['sentences']} sentences · {found['model']}",
        lambda: _table(found, kind),
        seeing=_SEEING,
        formula=_FORMULA,
        take=lambda point: session.change(**{kind: tuple(point)}),
        sentence=False,
        inked=True,
    )
    st.markdown("#### Does what a head looks at predict how much it matters?")
    st.markdown(predicted(model, found, kind, by))
    if "pruning" in found:
        _pruning(found)
    st.caption(f"{text.data(found['data'][:1].upper() + found['data'][1:])}.")
    how(found)


def told(found: Json, grid: list[list[Json]], kind: str, by: str) -> str:
    """The head that the loss needs most, and how many it does not need surely."""
    places = [(layer, head) for layer, row in enumerate(grid) for head in range(len(row))]
    most = max(places, key=lambda at: grid[at[0]][at[1]]["value"])
    cell = grid[most[0]][most[1]]
    unsure = sum(grid[layer][head]["low"] <= 0 for layer, head in places)
    interval = f"{labels.number(cell['low'], '.3f')} to {labels.number(cell['high'], '.3f')}"
    return (
        f"The loss with all heads is {found['loss']:.2f} nats a token. In {KIND_NAMES[kind].lower()}, it "
        f"rises most without **{labels.head_phrase(*most)}**: by {cell['value']:.3f} ({interval}). Without "
        f"{unsure} of the {len(places)} heads it does not surely rise: the interval reaches 0."
    )


def _cells(found: Json, kind: str, by: str) -> list[list[Cell]]:
    def cell(layer: int, head: int, value: Json) -> Cell:
        shown = labels.number(value["value"], "+.3f")
        note = (
            f"{labels.head_phrase(layer, head)}\nrise of the loss: {shown} "
            f"({value['low']:+.3f} to {value['high']:+.3f})\n"
            f"gradient measure: {found['gradient'][kind][layer][head]:.4f}"
        )
        return Cell(value["value"], shown, "" if value["low"] > 0 else "n. s.", note)

    grid = found["alone"][by][kind]
    return [[cell(i, j, value) for j, value in enumerate(row)] for i, row in enumerate(grid)]


def predicted(model: str, found: Json, kind: str, by: str) -> str:
    """Rank correlations of importance with the gradient measure, and with every statistic of `heads.json`."""
    importance = np.array([[cell["value"] for cell in row] for row in found["alone"][by][kind]])
    known = catalogue.facts(model).get("heads", {}).get(kind, [])
    columns = {"gradient measure": np.array(found["gradient"][kind])}
    for name, label in _LABELS.items():
        values = np.array([[head.get(name, np.nan) for head in layer] for layer in known])
        if values.shape == importance.shape and np.isfinite(values).all():
            columns[label] = values
    lines = ["| | rank correlation | by chance, 95\u00a0% |", "|---|---:|---:|"]
    beyond = 0
    for label, values in columns.items():
        each = agreement(values.ravel(), importance.ravel())
        if each.value != each.value:
            continue
        sure = not each.low <= each.value <= each.high
        beyond += sure and label != "gradient measure"
        bold = "**" * sure
        low, high = (labels.number(end, "+.2f") for end in (each.low, each.high))
        lines.append(f"| {label} | {bold}{labels.number(each.value, '+.2f')}{bold} | {low} to {high} |")
    others = len(lines) - 3
    said = (
        f"Over the {importance.size} heads: {beyond} of {others} statistics correlate with importance more "
        f"than permuted heads do in 95 of 100 cases; by chance alone, {0.05 * others:.1f} would."
    )
    return "\n".join([said, "", *lines])


def _table(found: Json, kind: str) -> Table:
    rows = [
        (layer + 1, head + 1, by, cell["value"], cell["low"], cell["high"])
        for by, kinds in found["alone"].items()
        for layer, row in enumerate(kinds[kind])
        for head, cell in enumerate(row)
    ]
    return [("layer", "head", "replaced by", "rise of the loss", "low", "high"), *rows]


def _pruning(found: Json) -> None:
    pruning = found["pruning"]
    st.markdown("#### How many heads can go?")
    st.markdown(_pruned(pruning))
    left, right = st.columns(2, gap="large")
    where = f"all kinds, {pruning['heads'][-1]} heads · replaced by zero · {found['model']}"
    random = dict(zip(range(1, 100), pruning["random"], strict=False))
    losses = {"smallest gradient first": pruning["ranked"]} | {
        f"random order {seed}": curve for seed, curve in random.items()
    }
    scores = pruning["bleu"]
    bleu = {"smallest gradient first": scores["ranked"], "random order 1": scores["random"]}
    for column, name, series, title, what in (
        (left, "pruning loss", losses, "nats a token", f"Loss, {found['sentences']} sentences"),
        (right, "pruning bleu", bleu, "BLEU", f"Greedy translations of {pruning['translations']} sentences"),
    ):
        with column:
            panel(
                name,
                lambda series=series, title=title: curves(pruning["heads"], series, ("heads off", title)),
                f"{what} · {where}",
                lambda series=series: [  # type: ignore[misc]
                    ("heads off", *series),
                    *zip(pruning["heads"], *series.values(), strict=True),
                ],
                sentence=False,
            )


def _pruned(pruning: Json) -> str:
    half = len(pruning["heads"]) // 2
    random = np.mean([curve[half] for curve in pruning["random"]])
    return (
        "Heads are switched off by tenths, those with the smallest gradient first, ranked again each time. "
        f"With {pruning['heads'][half]} of {pruning['heads'][-1]} heads off, the loss is "
        f"{pruning['ranked'][half]:.2f} (from {pruning['ranked'][0]:.2f}), and {random:.2f} if they are "
        "chosen by chance. Nothing was trained again. The gradients that rank the heads come from the same "
        "sentence pairs as the loss, which favours that order."
    )
