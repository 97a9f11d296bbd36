"""A difference of two logits, by source token and by token written before: several measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from figures.base import labels
from figures.base.labels import number
from figures.maps.measures import MeasureRow, measures_map
from lenses.again.slopes import audit_saliency
from lenses.again.way_back import audit_hidden
from lenses.again.written import audit_attribution, through_keys
from lenses.measures.attribution import Attribution
from lenses.measures.way_back import WayBack
from transformer import AttentionKind, Translation, Translator
from transformer.trace.report import AuditReport
from transformer.trace.view import Array
from ui.address import session
from ui.controls import Table, panel, word
from ui.maps import measures
from ui.server.opened import Opened
from ui.views.explanation import sources

_MEASURES = (
    "*Part*: what all heads add through the token on the direct path, in nats (without b_V where the graph "
    "stands above, as it belongs to no token). *Effect*: Δ log p of the token with the position hidden from "
    "all heads of cross-attention, by running again. *Relevance*: gradient × input with attention weights "
    "and the σ of every norm held fixed (relevance propagation, Ali et al. 2022); unlike parts, it follows "
    "feed-forward networks, too. *Integrated gradients* follow both logits from embeddings of zeros: all "
    "paths, but the numbers depend on where the line begins. *Share*: ALTI+, of what enters the prediction. "
    "They answer different questions, and need not agree."
)


def show(
    opened: Opened,
    found: measures.Reasons,
    back: tuple[WayBack, AuditReport] | None,  # the way back with its checks; None for a recurrent decoder
    step: int,
    against: int,
    pair: str,
) -> None:
    """Draws one map for the source, one for what was written before."""
    run, own = opened.translation, found.saliency
    pair = f"{pair} at step {labels.count(step)}"
    kinds = {"cross": ("#### By source token", run.source_tokens, own.source)}
    kinds["decoder"] = ("#### By what was read before", run.decoder_input_tokens[: step + 1], own.prefix)
    for kind, (title, tokens, relevance) in kinds.items():
        st.markdown(title)
        rows = [MeasureRow("relevance, propagated" if own.held else "integrated gradients", relevance, True)]
        proved = [_audit_of_gradients(opened, found, step, against)]
        if back is not None:
            parts: Array | None = (back[0].source if kind == "cross" else back[0].prefix).sum((0, 1))
            proved.append(back[1])
            shares = measures.sources(opened)
            each = shares.source if kind == "cross" else shares.prefix
            rows.append(MeasureRow("share (ALTI+)", each[step][: len(tokens)]))
            proved.append(sources.proved(opened))
        elif (parts := measures.through(found.attribution, kind)) is not None:
            proved.append(_audit_of_parts(opened, found.attribution, step, against, kind, parts))
        if parts is not None:
            rows.insert(0, MeasureRow("part, read there", parts[: len(tokens)], True))
            if kind == "cross" and len(tokens) <= measures.MOST_TOKENS:
                effects = measures.without_source(opened, step)
                st.markdown(_told(run, step, parts, effects))
                rows.insert(1, MeasureRow("effect, without it", effects, True))
                proved.append(_audit_of_effects(opened, step, effects))
        _side(opened, kind, labels.names(tokens), rows, pair, proved)


def _side(
    opened: Opened,
    kind: str,
    names: list[str],
    rows: list[MeasureRow],
    pair: str,
    proved: Sequence[AuditReport],
) -> None:
    audit = proved[0]
    for each in proved[1:]:
        audit = audit.joined(replace(each, claim=""))

    def table() -> Table:
        return [["measure", *names], *([row.name, *map(float, row.values)] for row in rows)]

    panel(
        f"tokens.{kind}",
        lambda ink: measures_map(rows, names, ink),
        f"{pair}, by token: {', '.join(each.name for each in rows)} · {opened.translation.model}",
        table,
        seeing=_MEASURES,
        audit=audit,
        inked=True,
        scrolls=160 + 40 * len(names) if len(names) > 8 else False,
    )


def _told(run: Translation, step: int, parts: Array, effects: Array) -> str:
    """That a part is no effect, by the tokens where each is largest and by the one at the cursor."""
    most, needs = int(np.argmax(np.abs(parts))), int(np.argmin(effects))
    token, read, needed = map(
        word, (run.target_tokens[step], run.source_tokens[most], run.source_tokens[needs])
    )
    same = "It is the same position" if most == needs else f"The model needs {needed} most instead"
    told = (
        f"**A part is no effect.** The largest part is read at {read} "
        f"({number(float(parts[most]), '+.2f')}). {same}: without it, log p of {token} changes by "
        f"{number(float(effects[needs]), '+.2f')} nats, as the model then also attends elsewhere."
    )
    at = session.current().source
    if at is None or at >= len(effects) or at in (most, needs):
        return told
    return (
        f"{told} At the cursor, {word(run.source_tokens[at])}: part {number(float(parts[at]), '+.2f')}, "
        f"effect {number(float(effects[at]), '+.2f')}."
    )


def _audit_of_gradients(opened: Opened, found: measures.Reasons, step: int, against: int) -> AuditReport:
    pair, own = (opened.translation.steps[step].token_id, against), found.saliency

    def proof(model: Translator, run: Translation) -> AuditReport:
        return replace(own.audit, claim="").joined(audit_saliency(model, run, step, pair, own))

    drawn = own.source, own.prefix, *own.along
    return measures.checked(opened, ("gradients", step, *pair, own.held), drawn, proof)


def _audit_of_parts(
    opened: Opened, found: Attribution, step: int, against: int, kind: str, keys: Array
) -> AuditReport:
    pair = opened.translation.steps[step].token_id, against

    def proof(model: Translator, run: Translation) -> AuditReport:
        own = audit_attribution(model.model, run, step, pair, found)
        return own.joined(through_keys(found, AttentionKind(kind), keys))

    key = "parts by token", step, *pair, kind
    return measures.checked(opened, key, [keys, *found.keys.values()], proof)


def _audit_of_effects(opened: Opened, step: int, effects: Array) -> AuditReport:
    def proof(model: Translator, again: Translation) -> AuditReport:
        return audit_hidden(model, again, step, effects)

    return measures.checked(opened, ("without source", step), [effects], proof)
