"""Why one token and not another: the difference of two logits, split."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from figures.base import captions, labels
from figures.base.bars import percent
from figures.maps.measures import part_bars
from lenses.again.written import audit_attribution
from lenses.measures.attribution import Attribution
from lenses.measures.gradients import NO_LINE, integrates
from transformer import AttentionKind, Translation, Translator
from transformer.runs.translation import Alternative, DecodeStep
from transformer.trace.report import AuditReport
from ui.address import State, session
from ui.controls import Table, inform, panel, part, pickers, plain
from ui.maps import measures
from ui.maps.looking import cells_of
from ui.server.opened import Opened
from ui.shell import waiting
from ui.views.explanation import scores, sources, tokens, way

_SHOWN = 14
"""Parts that have a bar of their own."""
_SEEING = (
    "The decoder's last stream is a sum: the token that was read, its position, every head, every "
    "feed-forward network, and biases. With the σ of every norm held fixed, the logit of a token is "
    "linear in it, so the difference of two logits is the sum of such parts. It is the direct path only: "
    "what a later layer makes of what a head wrote is counted for the later layer."
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
    first = next(iter(rivals.values()))
    rival = rivals.get(now.rival or "", first)
    if now.rival is not None and now.rival not in rivals:
        asked, shown = (plain(labels.piece(each)) for each in (now.rival, first.token))
        st.caption(f"“{asked}” is no other token of this step, so “{shown}” is taken.")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(width=205):
            pickers.row_picker(opened, "cross", step)
        with st.container(width=220):
            offered = {each: f"and not {labels.piece(each)}" for each in rivals}
            pickers.choose("rival", "The other token", offered, rival.token, texts=True)
        can = integrates(opened.translation.config)
        integrated = now.integrated and can
        st.toggle(
            "integrated gradients (some seconds)",
            integrated,
            disabled=not can,
            help=None if can else NO_LINE,
            **pickers.control("integrated", now.integrated, lambda on: session.change(integrated=on)),
        )
    with waiting.progress("Splitting the logits") as tell:
        found = measures.reasons(opened, step, rival.token_id, integrated, tell=tell)
    st.markdown(_sentence(found.attribution, written, rival))
    pair = f"z(“{captions.quote(written.token)}”) − z(“{captions.quote(rival.token)}”)"
    back = None
    if "decoder" in opened.kinds:
        followed = measures.back(opened, step, rival.token_id)
        back = followed, way.show(opened, followed, step, rival.token_id, pair)
        reads = way.reads(followed, step)
    else:
        inform("The way back to the source words needs a decoder with self-attention; this one has a unit.")
        reads = _read_most(found.attribution, step)
    _why_there(opened, now, reads)
    tokens.show(opened, found, back, step, rival.token_id, pair)
    st.markdown("#### All that wrote the last stream")
    names, values = _parts(found.attribution)
    panel(
        "parts",
        lambda: part_bars(names, values),
        f"Parts of {pair} at step {labels.count(step)}, direct paths, σ of every norm fixed · "
        f"{opened.asked.model}",
        lambda: _table(found.attribution),
        seeing=_SEEING,
        formula=_SCALED if opened.translation.config.scaled_output else _FORMULA,
        audit=_audit_of_parts(opened, found.attribution, step, rival),
    )
    if back is not None:
        st.markdown("#### From the source, or from what was written before?")
        sources.show(opened, back[0], found.saliency, step)


def _read_most(found: Attribution, step: int) -> list[way.ReadCell]:
    """What the heads of cross-attention that add most read most."""
    parts = found.keys[AttentionKind.CROSS]
    order = np.argsort(-np.abs(parts).max(-1), axis=None, kind="stable")[:12]
    places = [divmod(int(at), parts.shape[1]) for at in order]
    return [way.ReadCell("cross", place, step, int(np.argmax(np.abs(parts[place])))) for place in places]


def _why_there(opened: Opened, now: State, reads: list[way.ReadCell]) -> None:
    """One read: the one that the cursor names, or else the first."""
    chosen = reads[0]
    if now.kind in opened.kinds:
        kind, head = now.kind, getattr(now, now.kind)
        row, key = cells_of(opened, now)[kind][0], now.source if kind == "cross" else now.key
        keys = opened.translation.weights(kind, *head)[row]
        chosen = way.ReadCell(
            kind, head, row, int(np.argmax(keys)) if key is None else min(key, len(keys) - 1)
        )
    st.markdown("#### Why does a head read there?")
    offered = {each: way.name(opened.translation, each) for each in dict.fromkeys([*reads, chosen])}
    with st.container(width=420):
        pickers.choose(
            "read", "A read", offered, chosen, lambda read: way.ReadCell(*read).choose(), texts=True
        )
    scores.show(opened, *chosen)


def _audit_of_parts(
    opened: Opened,
    found: Attribution,
    step: int,
    rival: Alternative,
) -> AuditReport:
    pair = opened.translation.steps[step].token_id, rival.token_id

    def proof(model: Translator, run: Translation) -> AuditReport:
        own = audit_attribution(model.model, run, step, pair, found)
        return replace(found.audit, claim="").joined(own)

    drawn = [found.values, *found.keys.values()]
    return measures.checked(opened, ("parts", step, *pair), drawn, proof)


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
