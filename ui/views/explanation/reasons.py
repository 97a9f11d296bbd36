"""Why one token and not another: the difference of two logits, split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from figures.base import captions, labels
from figures.base.bars import percent
from figures.maps.measures import Row, measures_map, part_bars
from lenses.again.slopes import audit_saliency
from lenses.again.written import audit_attribution, through_keys
from lenses.measures.attribution import Attribution
from transformer import AttentionKind, Translation, Translator
from transformer.runs.translation import Alternative, DecodeStep
from transformer.trace.report import AuditReport
from transformer.trace.view import Array
from ui.address import State, session
from ui.controls import Table, inform, panel, part, pickers, plain
from ui.maps import measures
from ui.server.opened import Opened
from ui.shell import waiting
from ui.views.explanation import way

_SHOWN = 14
"""Parts that have a bar of their own."""
_SEEING = (
    "The decoder's last stream is a sum: the token that was read, its position, every head, every "
    "feed-forward network, and biases. With the σ of every norm held fixed, the logit of a token is "
    "linear in it, so the difference of two logits is the sum of such parts. It is the direct path only: "
    "what a later layer makes of what a head wrote is counted for the later layer. Integrated gradients "
    "follow both logits from embeddings of zeros to the real ones; they see all paths, but their numbers "
    "depend on where the line begins."
)
_FORMULA = r"z_A - z_B = \sum_w \mathrm{part}_w \cdot (W_A - W_B) + b"
_SCALED = r"z_A - z_B = \sum_w \mathrm{part}_w \cdot (W_A - W_B) / \sqrt{d_{model}}"


@part
def show(opened: Opened, now: State) -> None:
    now = session.current()
    step = min(now.step or 0, len(opened.translation.steps) - 1)
    written = opened.translation.steps[step]
    rivals = {each.token: each for each in written.alternatives if each.token_id != written.token_id}
    if not rivals:
        inform("No other token was recorded at this step.")
        return
    rival = rivals.get(now.rival or "", next(iter(rivals.values())))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(width=205):
            pickers.row_picker(opened, "cross", step)
        with st.container(width=220):
            offered = {each: f"and not {labels.piece(each)}" for each in rivals}
            pickers.choose("rival", "The other token", offered, rival.token, texts=True)
        st.toggle(
            "integrated gradients (some seconds)",
            now.integrated,
            **pickers.control("integrated", now.integrated, lambda on: session.change(integrated=on)),
        )
    with waiting.progress("Splitting the logits") as tell:
        asked, run = opened.asked, opened.translation
        found = measures.reasons(asked, run, step, rival.token_id, now.integrated, tell)
    st.markdown(_sentence(found.attribution, written, rival))
    names, values = _parts(found.attribution)
    pair = f"z(“{captions.quote(written.token)}”) − z(“{captions.quote(rival.token)}”)"
    if "decoder" in opened.kinds:
        st.markdown("#### From this token back")
        way.show(opened, step, rival.token_id, pair)
        st.markdown("#### All that wrote the last stream")
    else:
        inform("The way back to the source words needs a decoder with self-attention; this one has a unit.")
    panel(
        "parts",
        lambda: part_bars(names, values),
        f"Parts of {pair} at step {labels.count(step)}, direct paths, σ of every norm fixed · "
        f"{opened.asked.model}",
        lambda: _table(found.attribution),
        seeing=_SEEING,
        formula=_SCALED if run.config.scaled_output else _FORMULA,
        audit=_audit_of_parts(opened, found.attribution, step, rival),
    )
    _tokens(opened, found, step, rival, pair)


def _audit_of_parts(
    opened: Opened,
    found: Attribution,
    step: int,
    rival: Alternative,
    kind: str = "",
    keys: Array | None = None,
) -> AuditReport:
    """The checks of the parts, and of their sums by key, if these are drawn."""
    tokens = opened.translation.steps[step].token_id, rival.token_id

    def proof(model: Translator, run: Translation) -> AuditReport:
        own = audit_attribution(model.model, run, step, tokens, found)
        own = replace(found.audit, claim="").joined(own)
        return own if keys is None else own.joined(through_keys(found, AttentionKind(kind), keys))

    drawn = [found.values, *found.keys.values(), *([] if keys is None else [keys])]
    return measures.checked(opened.asked, opened.translation, ("parts", step, *tokens, kind), drawn, proof)


def _audit_of_tokens(
    opened: Opened, found: measures.Reasons, step: int, rival: Alternative, integrated: bool
) -> AuditReport:
    """The checks of the gradients."""
    tokens, own = (opened.translation.steps[step].token_id, rival.token_id), found.saliency

    def proof(model: Translator, run: Translation) -> AuditReport:
        return replace(own.audit, claim="").joined(audit_saliency(model, run, step, tokens, own))

    drawn = own.source, own.prefix, *own.along
    key = "gradients", step, *tokens, integrated
    return measures.checked(opened.asked, opened.translation, key, drawn, proof)


def _sentence(found: Attribution, written: DecodeStep, rival: Alternative) -> str:
    shares = [percent(float(np.exp(each.log_prob))) for each in (written, rival)]
    helped, hurt = (found.writers[int(index(found.values))] for index in (np.argmax, np.argmin))
    total = labels.number(found.total, "+.2f")
    return (
        f"“{plain(captions.quote(written.token))}” has {shares[0]}, “{plain(captions.quote(rival.token))}” "
        f"{shares[1]}: its logit is {total} nats higher. On the direct path, **{helped}** spoke most for it "
        f"({labels.number(float(found.values.max()), '+.2f')}, above zero), and **{hurt}** most against it "
        f"({labels.number(float(found.values.min()), '+.2f')})."
    )


def _parts(found: Attribution) -> tuple[list[str], np.ndarray]:
    """The largest parts in their order, and the others as one."""
    order = np.argsort(-np.abs(found.values), kind="stable")
    shown = sorted(order[:_SHOWN], key=lambda at: -found.values[at])
    names, values = [str(found.writers[at]) for at in shown], [float(found.values[at]) for at in shown]
    if len(order) > _SHOWN:
        names.append(f"{len(order) - _SHOWN} others")
        values.append(float(found.values[order[_SHOWN:]].sum()))
    return names, np.array(values)


def _table(found: Attribution) -> Table:
    pairs = zip(found.writers, found.values, strict=True)
    return [["part", "nats"], *([str(writer), float(value)] for writer, value in pairs)]


def _tokens(opened: Opened, found: measures.Reasons, step: int, rival: Alternative, pair: str) -> None:
    """The same difference by source token and by token written before."""
    run, asked = opened.translation, f"{pair} at step {labels.count(step)}"
    name = "integrated gradients" if found.saliency.audit.checks else "gradient × input"
    gradients = _audit_of_tokens(opened, found, step, rival, bool(found.saliency.audit.checks))
    read, own = run.decoder_input_tokens[: step + 1], found.saliency
    sides = (
        ("#### By source token", "cross", run.source_tokens, own.source),
        ("#### By what was read before", "decoder", read, own.prefix),
    )
    for title, kind, tokens, values in sides:
        st.markdown(title)
        rows, audit = [Row(name, values, True)], gradients
        through = measures.through(found.attribution, kind)
        if through is not None:
            rows.insert(0, Row("through attention", through[: len(tokens)], True))
            parts = _audit_of_parts(opened, found.attribution, step, rival, kind, through)
            audit = gradients.joined(replace(parts, claim=""))
        _side(kind, tokens, rows, asked, opened, audit)


def _side(
    kind: str,
    tokens: Sequence[str],
    rows: list[Row],
    asked: str,
    opened: Opened,
    audit: AuditReport,
) -> None:
    names = labels.names(tokens)
    panel(
        f"tokens.{kind}",
        lambda ink: measures_map(rows, names, ink),
        f"{asked}: what all heads of {captions.KIND_NAMES[kind].lower()} add through each token on the "
        f"direct path, b_V with it, and {rows[-1].name} · {opened.asked.model}",
        lambda: [["measure", *names], *([row.name, *map(float, row.values)] for row in rows)],
        audit=audit,
        inked=True,
        scrolls=160 + 40 * len(tokens) if len(tokens) > 8 else False,
    )
