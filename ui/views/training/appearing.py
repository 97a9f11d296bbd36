"""When heads appear: the statistics of a run against its steps, with other seeds as thin lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from figures.base import style
from figures.base.bars import percent
from figures.pages.training.birth import Trend, over_snapshots
from lab.birth.appearing import LATER, PREVIOUS, Born
from ui.controls import Table, inform, panel

_PREVIOUS = (
    "For each head, the share of rows whose largest weight is on the token before; the line is the best head "
    "at each snapshot. Such a head needs to know positions, so it cannot exist from the start."
)
_ALIGNER = (
    "Cross-attention as a word aligner, against links made by hand: 0 % is perfect. The line is the best "
    "head at each snapshot, by the better of its two rows. The dotted line is the error of linking words by "
    "their place alone; only below it has a head learned more than word order."
)
_LATER = (
    "How much of a row's weight would lie on later tokens if no mask hid any. The encoder has no mask, so "
    "its line is real. The decoder's line is the softmax of its real scores without the causal mask. The "
    "mask gives these scores no gradient, so nothing in training asks for this line to fall: it is "
    "extrapolation. A falling line would mean that the model looks back on its own."
)


def show(runs: Sequence[Born], name: str) -> None:
    """Draws the statistics, or says how to measure them; `name` is that of the run."""
    st.markdown("##### When heads appear")
    if not runs:
        inform("Nobody has measured these snapshots; `python -m lab birth` does, and writes birth.json.")
        return
    runs = (replace(runs[0], name=name), *runs[1:])
    steps, columns = list(runs[0].steps), st.columns(3, gap="medium")
    with columns[0]:
        found = [*_seeds(runs, "encoder", _previous), *_seeds(runs, "decoder", _previous)]
        sentence = f"{previous_sentence(runs, 'encoder')} {previous_sentence(runs, 'decoder')}"
        _picture("previous token", steps, found, "rows", sentence, _PREVIOUS, runs)
    with columns[1]:
        found = [*_seeds(runs, "cross", lambda run, _: run.aligner_best()), _level(runs[0].diagonal, steps)]
        _picture("aligner", steps, found, "alignment error", aligner_sentence(runs), _ALIGNER, runs)
    with columns[2]:
        even = _level(runs[0].even["decoder"], steps, "even weight")
        found = [*_seeds(runs, "encoder", _later), *_seeds(runs, "decoder", _later), even]
        _picture("later tokens", steps, found, "weight", later_sentence(runs), _LATER, runs)


def _previous(run: Born, kind: str) -> np.ndarray:
    return run.previous_best(kind)


def _later(run: Born, kind: str) -> np.ndarray:
    return run.later_mean(kind)


def _seeds(runs: Sequence[Born], kind: str, values: Callable[[Born, str], np.ndarray]) -> list[Trend]:
    """A line for the run, and thin ones for the other seeds, in the hue of a kind."""
    names = {"encoder": "encoder", "decoder": "decoder", "cross": "best head"}
    return [
        Trend("" if i else names[kind], values(run, kind).tolist(), style.HUES[kind], i > 0)
        for i, run in enumerate(runs)
    ]


def _level(value: float, steps: Sequence[int], name: str = "diagonal") -> Trend:
    return Trend(name, [value] * len(steps), style.CHOSEN, dash="dot")


def _picture(
    name: str,
    steps: list[int],
    found: list[Trend],
    title: str,
    sentence: str,
    seeing: str,
    runs: Sequence[Born],
) -> None:
    others, stored = len(runs) - 1, runs[-1].stored
    seeds = f"thin lines: {others} other seed{'s' * (others > 1)}, stored in {stored} · " if others else ""
    panel(
        f"birth {name}",
        lambda: over_snapshots(steps, found, title, percent=True),
        f"{name.capitalize()} by training step · {seeds}{runs[0].name}",
        lambda: table(runs),
        seeing=seeing,
        note=sentence,
        sentence=False,
    )


def table(runs: Sequence[Born]) -> Table:
    """Every statistic of every head at every snapshot of every run, for CSV; programs count from 0."""
    rows = [
        (run.name, step, kind, layer, head, statistic, values[i, layer, head])
        for run in runs
        for kind, statistic, values in _measured(run)
        for i, step in enumerate(run.steps)
        for layer in range(values.shape[1])
        for head in range(values.shape[2])
    ]
    return [("run", "step", "kind", "layer", "head", "statistic", "value"), *rows]


def _measured(run: Born) -> list[tuple[str, str, np.ndarray]]:
    found = [(kind, "previous", values) for kind, values in run.previous.items()]
    found += [(kind, "later", values) for kind, values in run.later.items()]
    return [*found, ("cross", "aer", run.errors)]


def after(step: int) -> str:
    """A place in training: `after 512 steps`."""
    return "before training" if step == 0 else f"after {step:,} step{'s' * (step != 1)}"


def previous_sentence(runs: Sequence[Born], kind: str) -> str:
    """When a previous-token head appears in a stack."""
    best = runs[0].previous_best(kind)
    told = (
        f"The {kind}'s best head points at the previous token in {percent(float(best[-1]))} of the rows at "
        f"the end ({percent(float(best[0]))} at first)."
    )
    return f"{told} Over {percent(PREVIOUS)}: {_when([each.previous_from(kind) for each in runs], runs[0])}"


def aligner_sentence(runs: Sequence[Born]) -> str:
    """When a head begins to align better than the diagonal."""
    best, own = runs[0].aligner_best(), runs[0]
    told = (
        f"The best head's alignment error is {percent(float(best[-1]))} at the end "
        f"({percent(float(best[0]))} at first); the diagonal has {percent(own.diagonal)}."
    )
    return f"{told} Better than the diagonal: {_when([each.aligner_from() for each in runs], own)}"


def later_sentence(runs: Sequence[Born]) -> str:
    """When the decoder begins to look back without its mask."""
    own = runs[0]
    mean = own.later_mean("decoder")
    told = (
        f"Without its mask, the decoder would give {percent(float(mean[-1]))} of its weight to later tokens "
        f"at the end ({percent(float(mean[0]))} at first); even weight gives them "
        f"{percent(own.even['decoder'])}."
    )
    found = [each.later_from("decoder") for each in runs]
    return f"{told} Under {percent(LATER)} of even weight: {_when(found, own)}"


def _when(found: Sequence[int | None], own: Born) -> str:
    """From which step on something holds: in this run, and in all seeds."""
    first, steps = found[0], sorted(step for step in found if step is not None)
    told = f"not {after(own.steps[-1])}" if first is None else _from(first)
    if len(found) == 1:
        return f"{told} (one run; other seeds may differ)."
    if not steps:
        return f"{told}, in none of the {len(found)} seeds."
    span = f"{steps[0]:,}" if steps[0] == steps[-1] else f"{steps[0]:,} to {steps[-1]:,}"
    share = f"all {len(found)}" if len(steps) == len(found) else f"{len(steps)} of {len(found)}"
    return f"{told} ({share} seeds, from step {span} on)."


def _from(step: int) -> str:
    return f"**from step {step:,} on**" if step else "**from the start**"
