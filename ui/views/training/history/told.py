"""What a model's history shows, in sentences."""

from __future__ import annotations

from figures.base import labels
from transformer.training.runs.history import History


def history(found: History) -> str:
    """How far the losses fell, and what BLEU was reached."""
    loss = found.training["smoothed_loss"]
    return (
        f"In {found.steps:,} steps, the training loss fell from {labels.number(loss[0])} to "
        f"**{labels.number(loss[-1])} nats** per token. {_valid(found)}{_bleu(found)}"
    )


def _valid(found: History) -> str:
    both = (found.measured(name) for name in ("valid_loss", "valid_loss_average"))
    points = sorted((value, step) for points in both for step, value in points)
    if not points:
        return ""
    value, step = points[0]
    return f"On the validation pairs, the lowest loss was **{labels.number(value)} nats**, at step {step:,}. "


def _bleu(found: History) -> str:
    points = found.measured("bleu")
    if not points:
        return "The run measured no BLEU."
    step, value = points[-1]
    best = max(score for _, score in points)
    peak = "" if value == best else f"; the highest was {labels.number(best, '.1f')}"
    return (
        f"On {found.bleu_sentences:,} validation sentences, BLEU (greedy) was "
        f"**{labels.number(value, '.1f')}** at step {step:,}{peak}."
    )


def caption(found: History, model: str) -> str:
    """What is drawn."""
    points = len(found.training["step"])
    every = "every step" if points == found.steps else f"{points:,} of {found.steps:,} steps"
    bleu = " · BLEU" if found.measured("bleu") else ""
    return (
        f"Loss{bleu} · learning rate · norm of the gradient before clipping, against the step · {every}, "
        f"means over {found.window:,} steps · from the log of this model's training · {model}"
    )
