"""How much of a prediction comes from the source, and how much from what is written already."""

from __future__ import annotations

import numpy as np
import streamlit as st

from explorer.app.controls import panel, plain
from explorer.app.maps import measures
from explorer.app.server import measured
from explorer.app.server.opened import Opened
from explorer.figures.base import labels, style
from explorer.figures.base.bars import percent
from explorer.figures.maps.measures import MeasureRow, measures_map, share_bars
from explorer.lenses.heads.measures import SENTENCES
from explorer.lenses.measures.alti import Shares
from explorer.lenses.measures.comparisons import rollout
from transformer.storage.description import SURVEY_FILE

_SEEING = (
    "ALTI+ follows what each block wrote back to its inputs. An input's share is how much nearer it brings "
    "the block's output; shares of the layers are multiplied. The residual of cross-attention is the "
    "decoder's own stream, so it counts as prefix. Feed-forward networks and biases are ignored, and "
    "negative shares are cut to 0; a row that nothing brings nearer goes to the residual: shares sum to 1 "
    "because they are made to, which proves nothing. The last token, `</s>`, and the first step, which has "
    "no prefix but a start token, are cases of their own."
)
_FORMULA = (
    r"c_{ij} = \max\!\left(0,\ \lVert y_i \rVert_1 - \lVert y_i - T_i(x_j) \rVert_1\right), \qquad "
    r"y_i = \sum_j T_i(x_j) + b"
)
STRETCH = 3
"""Fewest steps in a row with a low share that make a warning."""
_SHOWN = 24
"""Most columns of the map of tokens."""


def show(opened: Opened, step: int) -> None:
    """Draws the shares of every step."""
    found = measures.sources(opened)
    run = opened.translation
    steps, source = labels.names(run.target_tokens), found.source.sum(1)
    rolled = rollout(run)[0].sum(1)
    at_step = (
        f"**{plain(steps[step])}**: {percent(float(source[step]))} of what predicts it comes from the source."
    )
    st.markdown(f"{at_step}\n\n{told(steps, source)}")
    if usual := measured.described(opened.source, SURVEY_FILE).get("usual"):
        st.markdown(
            f"Usual for this model: {percent(usual[0])} to {percent(usual[2])}, half of the steps above "
            f"{percent(usual[1])} (nine of ten steps of {SENTENCES} sentences)."
        )
        if alone := detached(steps, source, usual[0]):
            st.warning(plain(alone), icon=":material/link_off:")
    panel(
        "source share",
        lambda: share_bars(steps, source, ("rollout", rolled), (style.HUES["cross"], style.HUES["decoder"])),
        "Shares of source and prefix in each prediction (ALTI+), and attention rollout, whose "
        f"{float(rolled[0]):.3f} is the same for every step of every sentence (1 − 2⁻ᴸ with L decoder "
        f"layers: an assumption, not the model) · {run.model}",
        lambda: [["step", "source", "rollout"], *zip(steps, source.tolist(), rolled.tolist(), strict=True)],
        seeing=_SEEING,
        formula=_FORMULA,
        audit=measures.audited(opened),
        derived=True,
    )
    _tokens(opened, found, steps)


def detached(steps: list[str], source: np.ndarray, low: float) -> str:
    """A warning if the source's share stays low for a whole stretch (Dale et al. 2022); empty if not."""
    below = [*(source[1 : len(source) - (steps[-1] == "</s>")] < low), False]
    longest, start = (0, 0), 0
    for at, is_below in enumerate(below):
        if not is_below:
            longest, start = max(longest, (at - start, start)), at + 1
    length, first = longest
    if length < STRETCH:
        return ""
    return (
        f"From “{steps[1 + first]}” to “{steps[first + length]}”, {length} steps, the source's share stays "
        f"below {percent(low)}, as it does in one step of twenty: here the decoder may write on its own, "
        "detached from the source."
    )


def told(steps: list[str], source: np.ndarray) -> str:
    """Which words lean on the source most, and which on the prefix."""
    ends = steps[-1] == "</s>"
    inner = source[1 : len(source) - ends]
    apart = [f"the first step, which has no prefix but a start, has {percent(float(source[0]))}"]
    if ends and len(source) > 1:
        apart.append(f"`</s>`, which ends the sentence, {percent(float(source[-1]))}")
    told = f"{' and '.join(apart)}."
    if not len(inner):
        return f"From the source, {told}"
    most, least = 1 + int(inner.argmax()), 1 + int(inner.argmin())
    between = (
        f"**{plain(steps[most])}** leans on it most ({percent(float(source[most]))}), and "
        f"**{plain(steps[least])}** least ({percent(float(source[least]))})"
        if len(inner) > 1
        else f"this is **{plain(steps[most])}**"
    )
    return (
        f"Between the first step and the end, **{percent(float(inner.mean()))}** comes from the source: "
        f"{between}. The rest comes from what was written before. Apart from these: {told}"
    )


def _tokens(opened: Opened, found: Shares, steps: list[str]) -> None:
    """Every step by source token."""
    run = opened.translation
    columns = labels.names(run.source_tokens)[:_SHOWN]
    rows = [
        MeasureRow(name, values[:_SHOWN]) for name, values in zip(steps[:_SHOWN], found.source, strict=False)
    ]
    cut = f", the first {_SHOWN} tokens" if max(len(run.source_tokens), len(steps)) > _SHOWN else ""
    panel(
        "source tokens",
        lambda ink: measures_map(rows, columns, ink),
        f"Shares of the source tokens in each prediction (rows){cut}, each row coloured by its largest · "
        f"{run.model}",
        lambda: [
            ["step", *labels.names(run.source_tokens)],
            *([name, *values] for name, values in zip(steps, found.source.tolist(), strict=True)),
        ],
        audit=measures.audited(opened),
        derived=True,
        inked=True,
        scrolls=160 + 40 * len(columns),
    )
