"""Answers of a model to the ready experiments, small enough for a file (`experiments.json`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import transformer.interventions as do
from lab.experiments.questions import Bench, Experiment
from transformer.interventions import Intervention, InterventionError
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator
from transformer.storage.description import EXPERIMENTS_FILE
from transformer.storage.marks import measured_as
from transformer.storage.typed import typed
from transformer.what_if.random_heads import random_heads


@dataclass(frozen=True)
class Moved:
    """The token of the unchanged translation that lost most."""

    step: int  # its step, from 0
    token: str  # its piece
    before: float  # its probability without the changes
    after: float  # the same with them


@dataclass(frozen=True)
class Control:
    """The same change at other heads of the same layer."""

    heads: int  # how many other heads
    as_large: int  # how many of them move the translation's log-probability at least as far
    lowest: float  # the smallest Δ log p of the whole translation among them, in nats
    highest: float  # the largest


@dataclass(frozen=True)
class Answer:
    """Effect of one set of changes on a model."""

    variant: str  # the name of the changes
    changes: str  # the changes, as `write_text` writes them
    target: str | None  # the given translation, for changes that hold only then; None if the model decoded
    base: str  # what the model writes without the changes
    changed: str | None  # what it writes with them; None if the translation was given
    delta: float | None  # Δ log p of the unchanged translation, in nats; None if the changes contradict it
    moved: float | None  # the sum of |Δ log p| over its tokens, which cannot cancel; None as ``delta``
    tokens: int  # tokens of the unchanged translation
    most: Moved | None  # the token of it that lost most; None as ``delta``
    control: Control | None  # the same change elsewhere; None if it is not a change of heads


def answers(translator: Translator, experiment: Experiment, heads: Mapping[str, Any]) -> Iterator[Answer]:
    """Puts a model, of which `heads.json` says something, to a question, with each set of changes.

    ValueError if it cannot read the sentence or a word of it, or does not take the changes.
    """
    base = translator.translate(experiment.text, capture=False)
    for variant, changes in experiment.variants(Bench(translator, heads, base)).items():
        changed = None
        if not experiment.forced:
            changed = translator.translate(experiment.text, capture=False, interventions=changes).text
        delta, moved, most = _moved(translator, experiment.text, base, changes)
        yield Answer(
            variant,
            do.write_text(changes),
            base.text if experiment.forced else None,
            base.text,
            changed,
            delta,
            moved,
            len(base.target_tokens),
            most,
            _control(translator, experiment.text, base, changes),
        )


def _moved(
    translator: Translator, text: str, base: Translation, changes: Sequence[Intervention]
) -> tuple[float | None, float | None, Moved | None]:
    try:
        forced = translator.force(text, base.target_ids, capture=False, interventions=changes)
    except InterventionError:  # the changes choose other tokens
        return None, None, None
    before, after = np.array(base.log_probs), np.array(forced.log_probs)
    change = after - before
    step = int(change.argmin())
    shares = (round(float(np.exp(each[step])), 6) for each in (before, after))
    whole, size = (round(float(each.sum()), 4) for each in (change, np.abs(change)))
    return whole, size, Moved(step, base.target_tokens[step], *shares)


def _control(
    translator: Translator, text: str, base: Translation, changes: Sequence[Intervention]
) -> Control | None:
    if len(changes) != 1:
        return None
    try:
        found = random_heads(translator, text, base.target_ids, changes[0])
    except InterventionError:
        return None
    low, high = (round(float(end), 4) for end in (found.effects.min(), found.effects.max()))
    return Control(len(found.controls), found.as_large, low, high)


def answers_of(directory: Path) -> dict[str, tuple[Answer, ...]]:
    """Answers of the model of a directory, by the names of the experiments."""
    return measured_as(directory, EXPERIMENTS_FILE, _answers) or {}


def _answers(values: Mapping[str, Any]) -> dict[str, tuple[Answer, ...]]:
    return typed(dict[str, tuple[Answer, ...]], values["experiments"])
