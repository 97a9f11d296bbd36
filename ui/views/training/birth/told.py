"""What the snapshots of a run show, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from figures.base import labels
from figures.base.bars import percent
from lab.birth.appearing import LATER, PREVIOUS, Born
from lab.birth.sentence import Frame
from ui.controls.text import plain


def after(step: int) -> str:
    """A place in training: `after 512 steps`."""
    return "before training" if step == 0 else f"after {step:,} step{'s' * (step != 1)}"


def snapshot(frames: Sequence[Frame], chosen: int, given: str | None) -> str:
    """The loss of the translation at a snapshot, and what the model writes there on its own."""
    frame, first = frames[chosen], frames[0]
    whose = "your translation" if given is None else f"the translation of {plain(given)}"
    text = f"**{_capital(after(frame.step))}**, {whose} costs **{labels.number(frame.loss)} nats** per token"
    if chosen:
        text += f" ({after(first.step)}: {labels.number(first.loss)})"
    if not frame.written.strip():
        return f"{text}. On its own, the model writes nothing."
    return f"{text}. On its own, the model writes: “{plain(labels.shorten(frame.written, 220))}”"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def previous(runs: Sequence[Born], kind: str) -> str:
    """When a previous-token head appears in a stack."""
    best = runs[0].previous_best(kind)
    told = (
        f"The {kind}'s best head points at the previous token in {percent(float(best[-1]))} of the rows at "
        f"the end ({percent(float(best[0]))} at first)."
    )
    return f"{told} Over {percent(PREVIOUS)}: {_when([each.previous_from(kind) for each in runs], runs[0])}"


def aligner(runs: Sequence[Born]) -> str:
    """When a head begins to align better than the diagonal."""
    best, own = runs[0].aligner_best(), runs[0]
    told = (
        f"The best head's alignment error is {percent(float(best[-1]))} at the end "
        f"({percent(float(best[0]))} at first); the diagonal has {percent(own.diagonal)}."
    )
    return f"{told} Better than the diagonal: {_when([each.aligner_from() for each in runs], own)}"


def later(runs: Sequence[Born]) -> str:
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
