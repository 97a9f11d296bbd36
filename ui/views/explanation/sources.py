"""How much of each prediction comes from the source, and how much from what is written already."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from figures.base import labels, style
from figures.base.bars import percent
from figures.maps.measures import Row, measures_map, share_bars
from lenses.again.flow import audit_rollout, audit_shares
from lenses.measures.alti import Shares
from lenses.measures.comparisons import rollout, value_zeroing
from transformer import Translation, Translator
from transformer.storage.description import FAITHFULNESS_FILE
from transformer.trace.report import AuditReport
from ui.address import State
from ui.controls import inform, panel, plain
from ui.maps import measures
from ui.server import measured
from ui.server.analyses import retraced
from ui.server.catalogue import translator
from ui.server.opened import Opened

_SEEING = (
    "ALTI+ follows what each block wrote back to its inputs. An input's share is how much nearer it brings "
    "the block's output; shares of the layers are multiplied. The residual of cross-attention is the "
    "decoder's own stream, so it counts as prefix. Feed-forward networks and biases are ignored, and "
    "negative shares are cut to 0; a row that nothing brings nearer goes to the residual: shares sum to 1 "
    "because they are made to, which proves nothing. The checks: the parts sum to what each block wrote, "
    "and shares are computed again. The last token, `</s>`, and the first step, which has no prefix but a "
    "start token, are cases of their own."
)
_FORMULA = (
    r"c_{ij} = \max\!\left(0,\ \lVert y_i \rVert_1 - \lVert y_i - T_i(x_j) \rVert_1\right), \qquad "
    r"y_i = \sum_j T_i(x_j) + b"
)
_RECURRENT = (
    "These shares follow attention through every layer of the decoder; this decoder reads what it has "
    "written by a recurrent unit, so they are not defined for it."
)
_SHOWN = 24
"""Most columns of the map of tokens."""


def show(opened: Opened, _now: State) -> None:
    if "decoder" not in opened.kinds:
        inform(_RECURRENT)
        return
    found = measures.sources(opened.asked, opened.translation)
    run = opened.translation
    steps, source = labels.names(run.target_tokens), found.source.sum(1)
    rolled = rollout(run)[0].sum(1)

    def proof(model: Translator, again: Translation) -> AuditReport:
        own = audit_shares(model.model, again, found).joined(audit_rollout(again, rolled))
        return replace(found.audit, claim="").joined(own)

    drawn = (found.source, found.prefix, rolled)
    audit = measures.checked(opened.asked, run, ("sources",), drawn, proof)
    st.markdown(told(steps, source))
    panel(
        "source share",
        lambda: share_bars(steps, source, ("rollout", rolled), (style.HUES["cross"], style.HUES["decoder"])),
        f"Shares of source and prefix in each prediction (ALTI+), and attention rollout · {run.model}",
        lambda: [["step", "source", "rollout"], *zip(steps, source.tolist(), rolled.tolist(), strict=True)],
        seeing=_SEEING,
        formula=_FORMULA,
        audit=audit,
    )
    _tokens(opened, found, steps, audit)
    st.markdown("#### Two measures beside it")
    st.markdown(beside(opened, rolled))


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


def _tokens(opened: Opened, found: Shares, steps: list[str], audit: AuditReport) -> None:
    """Every step by source token."""
    run = opened.translation
    columns = labels.names(run.source_tokens)[:_SHOWN]
    rows = [Row(name, values[:_SHOWN]) for name, values in zip(steps[:_SHOWN], found.source, strict=False)]
    cut = f", the first {_SHOWN} tokens" * (max(len(run.source_tokens), len(steps)) > _SHOWN)
    panel(
        "source tokens",
        lambda ink: measures_map(rows, columns, ink),
        f"Shares of the source tokens in each prediction (rows){cut}, each row coloured by its largest · "
        f"{run.model}",
        lambda: [
            ["step", *labels.names(run.source_tokens)],
            *([name, *values] for name, values in zip(steps, found.source.tolist(), strict=True)),
        ],
        audit=audit,
        inked=True,
        scrolls=160 + 40 * len(columns),
    )


def beside(opened: Opened, rolled: np.ndarray) -> str:
    """Rollout and value zeroing, each with the number that shows what it is worth here."""
    model, run = translator(opened.asked.model).model, retraced(opened.asked, opened.translation)
    layers = run.config.sites["encoder"].n_layers  # type: ignore[index]
    distances = [value_zeroing(model, run, "encoder", layer) for layer in range(layers)]
    largest, median = max(float(each.max()) for each in distances), float(np.median(np.stack(distances)))
    return (
        "**Attention rollout** (Abnar & Zuidema 2020) gives every residual ½ and every row of weights ½. Its "
        f"source share is {float(rolled[0]):.3f} at every step of every sentence (1 − 2⁻ᴸ with L decoder "
        "layers): the assumption, not the model.\n\n"
        "**Value zeroing** (Mohebbi et al. 2023) measures by how much a layer's output turns without the "
        f"value of one token, as 1 − cos. In this encoder the median is {median:.4f} and the largest "
        f"{largest:.3f}: drawn as shares of a row, small differences look as large as any."
        f"{worth(measured.described(opened.asked.model, FAITHFULNESS_FILE).get('measures', {}))}"
    )


def worth(measures: dict[str, Any]) -> str:
    """What a token loses without the source token that value zeroing puts first, beside other orders."""
    if "value zeroing" not in measures:
        return ""

    def lost(name: str) -> str:
        return f"{-measures[name]['deleted'][0]['value']['value']:.2f}"

    return (
        f" In cross-attention its order is worth something: over many sentences, a token loses "
        f"{lost('value zeroing')} nats when the source token that it puts first is hidden, "
        f"{lost('weights, last layer')} by the weights of the last layer, {lost('carried')} by what was "
        f"carried, {lost('effect')} by the exact effect and {lost('random')} by chance."
    )
