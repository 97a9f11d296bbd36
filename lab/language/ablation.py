"""Price of losing induction heads for a language model, beside that of random other heads.

A head that is switched off gives zeros. Its effect means little alone: any head may cost as much. So the same
number of other heads of the same layers is switched off too, in several draws
(``lenses.what_if.random_heads``). Two losses are measured: on the second copy of repeated random pieces,
where copying is all that helps, and on held-out text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np

from lab.language.induction import Repeated
from lab.measurement import Json
from lenses.what_if.random_heads import same_change_elsewhere
from transformer.interventions import Intervention, InterventionError, ablate
from transformer.runs.bootstrap import Floats, cell, ratio, resamples, rounded
from transformer.runs.language.corpus import log_probs, piece_log_probs
from transformer.runs.language.generator import TextGenerator

Heads = Sequence[tuple[int, int]]
"""Layers and heads, both from 0."""
Changes = tuple[Intervention, ...]
Measure = Callable[[Changes], Floats]
"""(units, 2): nats and pieces of each sequence or text, with some heads switched off."""
DRAWS = 20


def switched_off(heads: Heads) -> Changes:
    """Zero ablation of some heads, one change for each layer."""
    by_layer = groupby(sorted(heads), key=lambda place: place[0])
    return tuple(ablate("decoder", layer, [head for _, head in group]) for layer, group in by_layer)


def controls(heads: Heads, generator: TextGenerator, draws: int = DRAWS) -> list[Changes]:
    """At most so many draws of random other heads of the same layers; none if a layer has too few."""
    try:
        found = [
            same_change_elsewhere(each, generator.config, draws, seed=each_seed)[0]
            for each_seed, each in enumerate(switched_off(heads))
        ]
    except InterventionError:
        return []
    most = max(map(len, found), default=0)
    return [tuple(each[draw % len(each)] for each in found) for draw in range(most)]


def on_copies(generator: TextGenerator, sequences: Repeated) -> Measure:
    """The loss on the last copy of repeated random pieces, its first piece left out."""
    inside = sequences.length - 1

    def measure(changes: Changes) -> Floats:
        losses = -piece_log_probs(generator, sequences.ids, changes)[:, -inside:].sum(1)
        return np.stack([losses, np.full(len(losses), float(inside))], 1)

    return measure


def on_text(generator: TextGenerator, texts: Sequence[str]) -> Measure:
    """The loss on texts, their ends included."""
    sizes = [len(generator.ids(text)) + 1.0 for text in texts]

    def measure(changes: Changes) -> Floats:
        return np.stack([-log_probs(generator, texts, changes), sizes], 1)

    return measure


def costs(measure: Measure, heads: Heads, others: Sequence[Changes]) -> Json:
    """Cost of switching heads off (nats per piece), beside each draw of others.

    ``control`` is the mean rise over the draws, ``as_large`` how many of them cost at least as much;
    intervals are over sequences or texts.
    """
    whole, without = measure(()), measure(switched_off(heads))
    drawn = [measure(changes) for changes in others]
    weights = resamples(len(whole))
    point = float(_rise(whole.sum(0), without.sum(0)))
    rises = [float(_rise(whole.sum(0), each.sum(0))) for each in drawn]
    control = None
    if drawn:
        mean = np.mean(drawn, axis=0)
        control = cell(float(np.mean(rises)), _rise(weights @ whole, weights @ mean))
    return {
        "whole": cell(float(ratio(whole.sum(0))), ratio(weights @ whole)),
        "cost": cell(point, _rise(weights @ whole, weights @ without)),
        "control": control,
        "controls": [rounded(each, 4) for each in rises],
        "as_large": sum(each >= point for each in rises),
    }


def _rise(before: Floats, after: Floats) -> Floats:
    """Rise of the loss per piece, of summed nats and pieces (…, 2) → (…)."""
    return np.asarray(ratio(after) - ratio(before))
