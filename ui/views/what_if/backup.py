"""The section Backup heads: which head takes over when another is switched off, over many sentences."""

from __future__ import annotations

from math import comb

import numpy as np
import streamlit as st

from figures.base import labels
from figures.base.captions import KIND_NAMES
from figures.pages.backup_heads import Pairs, pairs_map
from lab.backups.pair_effects import PairEffects, TakeOver
from transformer import interventions as do
from transformer.interventions import Intervention
from ui.address import session
from ui.controls import Table, inform, panel, part, pickers, plain
from ui.server import catalogue
from ui.server.background.backups import run_of, shipped
from ui.server.background.run import Run, stays
from ui.server.background.surveys import named

_SEEING = (
    "First each head is switched off alone, then every pair of heads. Each time, the model must write the "
    "translation that it writes with all heads on. If a pair costs more than the sum of the two, one may "
    "stand "
    "in for the other. Most pairs cost a little more, because log p is curved: so each pair stands beside "
    "the other pairs of its head. A small effect of one head does not prove that its work is not needed."
)
_FORMULA = (
    r"\Delta_{ij} - \Delta_i - \Delta_j, \qquad \Delta = \text{mean change of } \log p \text{ per token}"
)
_INSTEAD = {"mean": "its mean output over the sample", "zero": "zero"}
_TICK = 0.5
_SHOWN = 8
"""Pairs in the table."""


def show(model: str) -> None:
    kind = catalogue.kind(model, session.current().kind)
    pickers.kind_picker(kind, catalogue.sizes(model))
    run = run_of(model, kind, session.current().language)
    if _measures(run):
        part(_measuring, run_every=_TICK)(model, run)
    else:
        part(_body)(model, kind, run)


def _measures(run: Run[PairEffects]) -> bool:
    """Whether the app measures for this visitor."""
    return run.asked(session.visitor()) and stays(run)


def _measuring(model: str, run: Run[PairEffects]) -> None:
    """Draws the progress and the findings so far, twice a second; the end draws the whole page again.

    What has ended can be exported; the button is a fragment, which a part with a clock must not hold (see
    ``ui.views.training.live.saving``).
    """
    if not _measures(run):
        session.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        text = run.place or f"Measuring sentence {run.read} of {run.total}"
        st.progress(min(1.0, run.read / max(1, run.total)), text)
        st.button("Stop", key="backup.stop", on_click=run.leave, args=(session.visitor(),))
    _found(run.result(), model, going=True)


def _body(model: str, kind: str, run: Run[PairEffects]) -> None:
    """Draws what the measurement says."""
    if not run.asked(session.visitor()):
        _unasked(model, kind, run)
        return
    if stays(run):
        session.rerun()
    if run.failed:
        st.error(plain(run.failed), icon=":material/error:")
    elif run.read < run.total:
        _stopped(run)
    _found(run.result(), model)


def _unasked(model: str, kind: str, run: Run[PairEffects]) -> None:
    """Draws the measurement that came with the model, and offers to measure here."""
    known = shipped(model, kind)
    if known is None:
        inform(
            f"No measurement came with this model. It takes {run.total} sentences of {named(model)}, in "
            "which every head and every pair of heads is switched off while you watch."
        )
    _found(known, model)
    st.button(
        f"Measure {run.total} sentences here",
        key="backup.ask",
        type="primary" if known is None else "secondary",
        icon=":material/play_arrow:",
        on_click=_ask,
        args=(run,),
    )
    if known is not None:
        st.caption("The result above was measured with these weights and came with the model.")


def _ask(run: Run[PairEffects]) -> None:
    session.keep()
    run.ask(session.visitor())


def _stopped(run: Run[PairEffects]) -> None:
    def go_on() -> None:
        run.go_on(session.visitor())

    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Stopped after {run.read} of {run.total} sentences.", width="content")
        st.button("Continue", key="backup.on", on_click=go_on)


def _found(found: PairEffects | None, model: str, going: bool = False) -> None:
    """Draws the findings, nothing before the first sentence."""
    if found is None:
        return
    taken = found.take_overs()
    st.markdown(sentence(found, taken))
    left, right = st.columns(2, gap="medium")
    with left:
        _map(found, model, going)
    with right:
        _table(taken[:_SHOWN], found)


def sentence(found: PairEffects, taken: tuple[TakeOver, ...]) -> str:
    """Which head takes over most, as Markdown."""
    if not taken:
        return (
            "No head matters more when another is off: every pair costs as much as the sum of both, or less."
        )
    most, pairs = taken[0], comb(len(found.heads), 2)
    below = int((np.tril(found.excess, -1) < 0).sum())
    return (
        f"When {labels.head_phrase(*most.off)} is off, switching off {labels.head_phrase(*most.head)} costs "
        f"**{_cost(most.then)} nats per token instead of {_cost(most.usual)}**: it may stand in. The pair "
        f"costs "
        f"{_cost(most.then - most.usual)} more than both alone ({_cost(most.high)} to {_cost(most.low)}, 95 "
        f"% "
        f"interval over {found.sentences} sentences; {most.sentences} of them agree). With the other heads, "
        f"that of {labels.head_name(*most.off)} is {_cost(most.control)} on average and at most "
        f"{_cost(most.strongest)}; {below} of all {pairs} pairs cost more than their parts."
    )


def _cost(effect: float) -> str:
    return labels.number(-effect, ".3f")


def _map(found: PairEffects, model: str, going: bool) -> None:
    heads = len(found.heads)
    panel(
        "backup heads",
        lambda: pairs_map(drawn(found)),
        f"{KIND_NAMES[str(found.kind)]} · framed: what one head costs; below: what a pair costs beyond both "
        f"alone · Δ log p per token of the model's own translation, nats · instead of a head's output: "
        f"{_INSTEAD[found.by]} · {found.sentences} sentences of {named(model)}, "
        f"{comb(heads, 2)} pairs · {model}",
        lambda: table(found),
        key=f"backup.map.{found.kind}",
        seeing=_SEEING,
        formula=_FORMULA,
        note=":gray[Choose a cell to switch these heads off in your sentence.]",
        take=lambda cell: _take(found, cell),
        sentence=False,
        saved=not going,
    )


def drawn(found: PairEffects) -> Pairs:
    """A measurement as the figure needs it."""
    values = found.excess
    np.fill_diagonal(values, found.alone)
    notes = [[_note(found, i, j) for j in range(i + 1)] for i in range(len(found.heads))]
    return Pairs(found.heads, values, notes)


def _note(found: PairEffects, row: int, column: int) -> str:
    names = [labels.head_name(*found.heads[at]) for at in (column, row)]
    joint = _nats(found.joint[row, column])
    if row == column:
        return f"{names[0]} alone\n{joint} nats per token"
    alone = [_nats(found.alone[at]) for at in (column, row)]
    return (
        f"{names[0]} and {names[1]}\nboth off {joint}, alone {alone[0]} and {alone[1]}\n"
        f"beyond both {_nats(found.excess[row, column])} nats per token\n"
        f"more than both in {found.more[row, column]} of {found.sentences} sentences"
    )


def _nats(value: float) -> str:
    return labels.number(float(value), "+.4f")


def _short(value: float) -> str:
    return labels.number(float(value), "+.3f")


def _table(taken: tuple[TakeOver, ...], found: PairEffects) -> None:
    if not taken:
        return
    st.markdown("##### Who may take over")
    st.dataframe(
        [
            {
                "off": labels.head_name(*each.off),
                "backup": labels.head_name(*each.head),
                "alone": _short(each.usual),
                "then": _short(each.then),
                "beyond both": f"{_short(each.then - each.usual)} "
                f"({_short(each.low)} to {_short(each.high)})",
                "with others": _short(each.control),
                "sentences": f"{each.sentences} of {found.sentences}",
            }
            for each in taken
        ],
        hide_index=True,
        alt="The pairs of heads that cost most beyond the sum of both",
    )
    st.caption(
        f"Δ log p per token, in nats. These are the largest of {comb(len(found.heads), 2)} pairs, so chance "
        "has a part in them; the last column says how many sentences agree."
    )


def table(found: PairEffects) -> Table:
    """Every pair as a row of a CSV file; layers and heads count from 1."""
    names = [labels.head_name(*head) for head in found.heads]
    rows = [
        (names[j], names[i], found.alone[j], found.alone[i], found.joint[i, j], found.more[i, j])
        for i in range(len(names))
        for j in range(i)
    ]
    head = ("head", "other head", "alone", "other alone", "both", f"more, of {found.sentences} sentences")
    return [head, *rows]


def _take(found: PairEffects, cell: list[int]) -> None:
    """Switches the heads of a cell off in the visitor's sentence."""
    chosen = dict.fromkeys(found.heads[int(at)] for at in reversed(cell))
    changes: list[Intervention] = [do.ablate(found.kind, *head, by=found.by) for head in chosen]
    session.change(
        **{**session.FRESH, "changes": tuple(changes), "step": session.current().step},
        view=None,
        kind=str(found.kind),
    )
