"""Over many sentences: weights against effects by kind and layer, beside controls, and by sort of word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from figures.base import captions, labels, style
from figures.maps.measures import by_layer
from transformer.storage.description import WEIGHT_EFFECT_FILE
from ui.controls import Table, how, inform, panel, text
from ui.server import measured
from ui.server.opened import Opened

Json = dict[str, Any]
_SEEING = (
    "In each layer of each sentence a head and two of its queries were drawn. Each key was hidden from "
    "that head and query alone, and the model ran again. The numbers are rank correlations within a query, "
    "mean over queries and sentences, with 95 % intervals. **Size** |Δ log p|: how much the probability of "
    "the token moved; a key of weight 0 moves nothing when it is hidden, so zeros agree by construction, "
    "and nothing else does. **Loss** −Δ log p: whether the token needed the key; nothing forces it to "
    "follow the weight. A query of the encoder predicts no token: its size is summed over all tokens, and "
    "it has no loss."
)
_CONTROLS = (
    "**Other weights in the place of the head's own**, for all its queries; the values stay. Nats that a "
    "token loses on average, and how far it moves either way. *Nothing*: the head adds nothing, not even "
    "b_V. If uniform or foreign weights cost as little as the head's own, its weights are not what the "
    "prediction rests on."
)
_SORTS = (
    "**Content words, function words, and the rest** (punctuation and `</s>`), over source words: their "
    "share of the keys, of the weight, and of the effect |Δ log p|; and the rank correlation of weight "
    "with effect among words of one sort."
)


def shipped(model: str) -> Json:
    """Content of a model's `weight_effect.json`; empty if the model has none."""
    return measured.described(model, WEIGHT_EFFECT_FILE)


def show(opened: Opened) -> None:
    """Draws what was measured of the model."""
    st.markdown("#### Weight against effect, by kind and layer")
    found = shipped(opened.asked.model)
    if not found:
        inform(
            "This was not measured for this model. `python -m lab weight-effect --model … --data …` measures "
            f"it and writes {WEIGHT_EFFECT_FILE} into its directory."
        )
        return
    st.markdown(told(found))
    kinds = found["kinds"]
    series: dict[str, Sequence[tuple[float, float, float]]] = {
        captions.KIND_NAMES[kind]: [_three(layer["weight"]) for layer in each["layers"]]
        for kind, each in kinds.items()
    }
    hues = [style.HUES[kind] for kind in kinds]
    panel(
        "by layer",
        lambda: by_layer(series, "rank correlation", hues),
        "Rank correlation of a head's weights with the size of the effect of hiding each key, by layer · "
        f"{found['sentences']} sentences · {found['model']}",
        lambda: _numbers(kinds),
        seeing=_SEEING,
        sentence=False,
    )
    with st.container(key="recurrent-terms"):
        st.markdown(correlations(kinds))
        st.markdown(_CONTROLS)
        st.markdown(replaced(kinds))
        st.markdown(_SORTS)
        st.markdown(sorts(kinds))
    st.caption(f"{text.data(found['data'][:1].upper() + found['data'][1:])}.")
    how(found)


def told(found: Json) -> str:
    """How well weights rank effects, and how little other weights cost."""
    kinds = found["kinds"]
    sizes = [f"{each['size']['weight']['value']:.2f} ({_name(kind)})" for kind, each in kinds.items()]
    losses = [
        f"{each['loss']['weight']['value']:.2f} ({_name(kind)})"
        for kind, each in kinds.items()
        if each["loss"]["weight"]
    ]
    costs = [
        f"{_signed(each['replaced']['uniform']['value'])} ({_name(kind)})" for kind, each in kinds.items()
    ]
    return (
        f"Within a query, weights rank keys as the **size** of the effect does with {', '.join(sizes)}: a "
        f"key without weight can move nothing. As the **loss** of the token does: {', '.join(losses)}. One "
        f"head with uniform weights costs a token {', '.join(costs)} nats."
    )


def correlations(kinds: Json) -> str:
    """Rank correlations of four orders with size and loss, in Markdown."""
    orders = next(iter(kinds.values()))["size"]
    rows = [
        (f"{_name(kind)}, {what}", each[what])
        for kind, each in kinds.items()
        for what in ("size", "loss")
        if each[what]["weight"]
    ]
    return _table("rank correlation with", list(orders), rows)


def replaced(kinds: Json) -> str:
    """What other weights cost, in Markdown."""
    ways = list(next(iter(kinds.values()))["replaced"])
    names = {"replaced": "loss", "moved": "size"}
    rows = [(f"{_name(kind)}, {names[what]}", each[what]) for kind, each in kinds.items() for what in names]
    return _table("nats a token", ways, rows, 3)


def sorts(kinds: Json) -> str:
    """Shares of the sorts of source words, in Markdown."""
    rows: list[tuple[str, Mapping[str, Any]]] = []
    for kind, each in kinds.items():
        if "share" in each:
            rows += [(f"{_name(kind)}, share of {what}", cells) for what, cells in each["share"].items()]
            rows.append((f"{_name(kind)}, correlation", each["within"]))
    return _table("", list(rows[0][1]), rows) if rows else ""


def _table(
    corner: str, columns: Sequence[str], rows: Sequence[tuple[str, Mapping[str, Any]]], digits: int = 2
) -> str:
    lines = [f"| {corner} | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    for name, cells in rows:
        lines.append(f"| {name} | {' | '.join(_said(cells.get(each), digits) for each in columns)} |")
    return "\n".join(lines)


def _said(cell: Mapping[str, float] | None, digits: int) -> str:
    if cell is None:
        return "–"
    value, low, high = (labels.number(cell[end], f".{digits}f") for end in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def _name(kind: str) -> str:
    return captions.KIND_NAMES[kind].lower()


def _signed(value: float) -> str:
    return labels.number(value, "+.3f")


def _three(cell: Mapping[str, float]) -> tuple[float, float, float]:
    return cell["value"], cell["low"], cell["high"]


def _numbers(kinds: Json) -> Table:
    rows = [
        (kind, labels.count(i), order, *_three(cell))
        for kind, each in kinds.items()
        for i, layer in enumerate(each["layers"])
        for order, cell in layer.items()
        if cell
    ]
    return [("kind", "layer", "order by", "rank correlation with |Δ log p|", "low", "high"), *rows]
