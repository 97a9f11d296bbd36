"""The small recurrent unit of Firefox's decoder against masked self-attention, all else equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from figures.base import labels
from figures.base.bars import percent
from ui.address import State
from ui.controls import how, seen
from ui.server import measured
from ui.views.recurrent.results import unmeasured

Json = dict[str, Any]
_NAMES = {"self_attention": "masked self-attention", "ssru": "SSRU"}
_SEEING = (
    "A simpler simple recurrent unit (Kim et al. 2019) keeps one vector: at each token it forgets a part, "
    "per dimension, and adds a part of the token. It costs the same at every step, and what it keeps is one "
    "vector however long the translation is; self-attention keeps a key and a value for every token written."
)
_MADE = (
    "Both decoders have two layers and began anew, with the same seed, beside the same frozen encoder and "
    "embeddings of the Firefox model. Both saw the same 700 batches of its own translations. Neither is "
    "trained on more than the other; but the texts and the encoder come from a model whose decoder has the "
    "SSRU, which may favour it. One seed each."
)


def show(_now: State) -> None:
    results = measured.shipped(measured.UNIT)
    if results is None:
        unmeasured("recurrent")
        return
    st.markdown(told(results))
    with st.container(key="recurrent-table"):
        st.markdown(table(results))
    st.caption(_MADE)
    with st.container(horizontal=True, gap="small"):
        seen(_SEEING)
        how(results)


def told(results: Json) -> str:
    """What the comparison found, in words with numbers."""
    gap, agreed = results["scores"]["ssru"]["bleu"]["difference"], results["agreement"]
    common, apart = agreed["ssru"]["common"]["value"], agreed["uniform"]["common"]["value"]
    sure = "does not differ surely" if gap["low"] <= 0 <= gap["high"] else "differs"
    loss = results["scores"]["ssru"]["loss"]["difference"]
    return (
        "**A decoder need not attend to what it has written.** In BLEU, the decoder with the unit "
        f"{sure} from the one with masked self-attention: {_signed(gap, '+.1f')} on "
        f"{results['sentences']:,} sentences; its loss differs by {_signed(loss, '+.2f')} nats a token. Both "
        "need cross-attention, and learn nearly the same: in the last layer, rows of the two have "
        f"{percent(common['value'])} of their weight in common (with a uniform row: "
        f"{percent(apart['value'])}), and in {percent(agreed['ssru']['same']['value']['value'])} of them the "
        "same source token has the largest weight."
    )


def table(results: Json) -> str:
    """One row for each decoder, in Markdown."""
    (gold,) = results["alignments"].values()
    times = results["speed"]["writing"]
    at = results["speed"]["lengths"].index(32)
    columns: dict[str, Callable[[str], str]] = {
        "parameters": lambda name: f"{results['models'][name]['parameters'] / 1e6:.2f} M",
        "BLEU": lambda name: _interval(results["scores"][name]["bleu"]["value"], ".1f"),
        "loss, nats a token": lambda name: _interval(results["scores"][name]["loss"]["value"], ".2f"),
        f"alignment error of the best head, {gold['pairs']} pairs": lambda name: percent(
            gold["predicted"][name]["error"]["value"]["value"]
        ),
        "time a token, 32 tokens": lambda name: f"× {times[name]['ratio'][at]:.2f}",
    }
    lines = ["| decoder reads its past by | " + " | ".join(columns) + " |", "|---" * (1 + len(columns)) + "|"]
    lines += [
        f"| {label} | " + " | ".join(make(name) for make in columns.values()) + " |"
        for name, label in _NAMES.items()
    ]
    return "\n".join(lines)


def _interval(cell: Json, form: str) -> str:
    return f"{cell['value']:{form}} ({cell['low']:{form}} to {cell['high']:{form}})"


def _signed(cell: Json, form: str) -> str:
    value, low, high = (labels.number(cell[name], form) for name in ("value", "low", "high"))
    return f"{value} ({low} to {high})"
