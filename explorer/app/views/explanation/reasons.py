"""Why one token and not another: the difference of two logits, by what wrote it and by source token."""

from __future__ import annotations

import numpy as np
import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import Table, inform, panel, part, pickers, plain, word
from explorer.app.maps import measures
from explorer.app.server.opened import Opened
from explorer.app.shell import waiting
from explorer.app.views.explanation import sources
from explorer.figures.base import captions, labels
from explorer.figures.base.bars import percent
from explorer.figures.base.labels import number
from explorer.figures.maps.measures import MeasureRow, measures_map, part_bars
from explorer.lenses.measures.attribution import Attribution
from transformer.run import Alternative, DecodeStep

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
_BY_TOKEN = (
    "*Part*: what all heads of cross-attention add through the token on the direct path, in nats, without "
    "b_V, which belongs to no token. *Difference without it*: how the difference of logits changes if the "
    "position is hidden from all heads of cross-attention, by running again. *Share*: ALTI+, of what enters "
    "the prediction. They answer different questions, and need not agree."
)


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
        named, taken = (plain(labels.piece(each)) for each in (now.rival, first.token))
        st.caption(f"“{named}” is no other token of this step, so “{taken}” is taken.")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(width=205):
            pickers.row_picker(opened, "cross", step)
        with st.container(width=220):
            offered = {each: f"and not {labels.piece(each)}" for each in rivals}
            pickers.choose("rival", "The other token", offered, rival.token, texts=True)
    with waiting.progress("Splitting the logits") as tell:
        split = measures.reasons(opened, step, rival.token_id, tell=tell)
    pair = f"z(“{captions.quote(written.token)}”) − z(“{captions.quote(rival.token)}”)"
    st.markdown(_sentence(split.attribution, written, rival))
    _by_source(opened, split, step, f"{pair} at step {labels.count(step)}")
    st.markdown("#### All that wrote the last stream")
    names, values = _parts(split.attribution)
    panel(
        "parts",
        lambda: part_bars(names, values),
        f"Parts of {pair} at step {labels.count(step)}, direct paths, σ of every norm fixed · "
        f"{opened.asked.model}",
        lambda: _table(split.attribution),
        seeing=_SEEING,
        formula=_SCALED if opened.translation.config.scaled_output else _FORMULA,
        audit=measures.audited(opened),
        derived=True,
    )
    if "decoder" in opened.kinds:
        st.markdown("#### From the source, or from what was written before?")
        sources.show(opened, step)


def _by_source(opened: Opened, split: measures.Reasons, step: int, pair: str) -> None:
    """Draws what each source token added, and what happens without it."""
    run, names = opened.translation, labels.names(opened.translation.source_tokens)
    rows, runs = [MeasureRow("part, read there", split.source, True)], 0
    st.markdown("#### By source token")
    if split.effects is not None:
        st.markdown(_no_effect(opened, step, split.source, split.effects))
        rows.append(MeasureRow("difference without it", split.effects, True))
        runs = len(split.effects)
    if "decoder" in opened.kinds:
        rows.append(MeasureRow("share (ALTI+)", measures.sources(opened).source[step]))
    panel(
        "tokens.cross",
        lambda ink: measures_map(rows, names, ink),
        f"{pair}, by source token: {', '.join(each.name for each in rows)} · {run.model}",
        lambda: [["measure", *names], *([row.name, *map(float, row.values)] for row in rows)],
        seeing=_BY_TOKEN,
        audit=measures.audited(opened, runs),
        derived=True,
        inked=True,
        scrolls=160 + 40 * len(names) if len(names) > 8 else False,
    )


def _no_effect(opened: Opened, step: int, parts: np.ndarray, effects: np.ndarray) -> str:
    """That a part is no effect, by the tokens where each is largest and by the one at the cursor."""
    run = opened.translation
    most, needs = int(np.argmax(np.abs(parts))), int(np.argmin(effects))
    read, needed = word(run.source_tokens[most]), word(run.source_tokens[needs])
    same = "It is the same position" if most == needs else f"The difference needs {needed} most instead"
    text = (
        f"**A part is no effect.** The largest part is read at {read} "
        f"({number(float(parts[most]), '+.2f')}). {same}: without it, the difference changes by "
        f"{number(float(effects[needs]), '+.2f')}, as the model then also attends elsewhere."
    )
    at = session.current().source
    if at is None or at >= len(effects) or at in (most, needs):
        return text
    return (
        f"{text} At the cursor, {word(run.source_tokens[at])}: part {number(float(parts[at]), '+.2f')}, "
        f"difference {number(float(effects[at]), '+.2f')}."
    )


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
