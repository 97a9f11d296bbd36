"""Over many sentences: which measures name the source tokens that the model needs."""

from __future__ import annotations

from typing import Any

import streamlit as st

from figures.base import labels, style
from figures.maps.measures import curves
from transformer.storage.description import FAITHFULNESS_FILE
from ui.address import State
from ui.controls import Table, how, inform, panel, text
from ui.server import measured
from ui.server.opened import Opened
from ui.views.explanation import kinds

Json = dict[str, Any]
_SEEING = (
    "At every step, each measure orders the source tokens. **Hidden**: the first of them are hidden from the "
    "whole decoder, and log p of the step's token falls; the more it falls, the better the order. **Kept**: "
    "all but the first are hidden; the less it falls, the better. The order by exact effect of each token "
    "alone is the best that a measure of single tokens can be expected to reach, but it costs a run for "
    "each; it need not be the best for several tokens. “Random” orders by chance, and “one random head” by a "
    "head drawn for each sentence."
)
_DRAWN = ("effect", "ALTI+", "weights, all heads", "rollout", "random")
_UNLEARNED = 0.5
"""Rank correlation with random weights from which a picture owes little to what was learned."""


def shipped(model: str) -> Json:
    """Content of a model's `faithfulness.json`; empty if the model has none."""
    return measured.described(model, FAITHFULNESS_FILE)


def show(opened: Opened, _now: State) -> None:
    _measures(opened)
    kinds.show(opened)


def _measures(opened: Opened) -> None:
    """Which measures name the source tokens that the model needs."""
    found = shipped(opened.asked.model)
    if not found:
        inform(
            "This was not measured for this model. `python -m lab faithfulness --model … --data …` measures "
            f"it and writes {FAITHFULNESS_FILE} into its directory."
        )
        return
    st.markdown(told(found))
    with st.container(key="recurrent-table"):
        st.markdown(table(found))
    left, right = st.columns(2, gap="large")
    measures, depths = found["measures"], found["depths"]
    hues = [*(style.HUES[kind] for kind in ("decoder", "cross", "encoder")), style.CHOSEN, style.NEUTRAL]
    for column, kind, what in ((left, "deleted", "hidden"), (right, "kept", "kept")):
        with column:
            series = {name: [-cell["value"]["value"] for cell in measures[name][kind]] for name in _DRAWN}
            panel(
                f"faithful {kind}",
                lambda series=series, what=what: curves(
                    depths, series, (f"tokens {what}", "nats lost a token"), hues
                ),
                f"Loss of log p with the first tokens of each order {what} · cross-attention of the whole "
                f"decoder · {found['sentences']} sentences · {found['model']}",
                lambda kind=kind: _numbers(found, kind),  # type: ignore[misc]
                seeing=_SEEING,
                sentence=False,
            )
    st.caption(f"{text.data(found['data'][:1].upper() + found['data'][1:])}.")
    how(found)


def told(found: Json) -> str:
    """What the comparison says of weights, and of the measures made to replace them."""
    measures = found["measures"]

    def lost(name: str) -> float:
        return float(-measures[name]["deleted"][0]["value"]["value"])

    weights, best = "weights, all heads", lost("effect")
    others = sorted(("carried", "ALTI+", "gradient × input", "rollout"), key=lost, reverse=True)
    interval = measures[weights]["deleted"][0]["value"]
    better = [name for name in others if lost(name) > -interval["low"]]
    said = f"{' and '.join(better)} surely more" if better else "none surely more"
    looks = [name for name, each in measures.items() if each["untrained"]["value"] > _UNLEARNED]
    same = [name for name in looks if name != "random"]
    control = (
        f"In a model with random weights, {' and '.join(same)} would look alike."
        if same
        else "No measure looks alike in a model with random weights."
    )
    return (
        f"Hiding the one token with the largest **mean weight** costs {lost(weights):.2f} nats "
        f"({-interval['high']:.2f} to {-interval['low']:.2f}), a random token {lost('random'):.2f}, the "
        f"token of largest effect {best:.2f}. Of the measures made to replace weights, {said}: "
        f"{', '.join(f'{name} {lost(name):.2f}' for name in others)}. {control}"
    )


def table(found: Json) -> str:
    """One row for each measure, in Markdown."""
    again = "retrained" in found["measures"]["random"]
    lines = [
        "| order by | lost, first token hidden | lost, all others hidden | rank correlation with effect "
        "| with random weights |" + " with a second seed |" * again,
        "|---|---:|---:|---:|---:|" + "---:|" * again,
    ]
    for name, each in found["measures"].items():
        cells = [each[kind][0]["value"] for kind in ("deleted", "kept")]
        numbers = [f"{-cell['value']:.2f} ({-cell['high']:.2f} to {-cell['low']:.2f})" for cell in cells]
        chance = "–" if name == "random" else _signed(each["untrained"]["value"])
        mark = " ⚠" * (name != "random" and each["untrained"]["value"] > _UNLEARNED)
        effect = "–" if name == "effect" else _interval(each["effect"])
        line = f"| {name} | {numbers[0]} | {numbers[1]} | {effect} | {chance}{mark} |"
        if again:
            line += " – |" if name == "random" else f" {_signed(each['retrained']['value'])} |"
        lines.append(line)
    return "\n".join(lines)


def _interval(cell: Json) -> str:
    value, low, high = (_signed(cell[name]) for name in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def _signed(value: float) -> str:
    return "0" if abs(value) < 0.005 else labels.number(value, "+.2f")


def _numbers(found: Json, kind: str) -> Table:
    rows = [
        (name, depth, *(cell["value"][part] for part in ("value", "low", "high")))
        for name, each in found["measures"].items()
        for depth, cell in zip(found["depths"], each[kind], strict=True)
    ]
    return [("order by", f"tokens {kind}", "Δ log p", "low", "high"), *rows]
