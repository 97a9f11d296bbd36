"""Values that measures give the source tokens at every step of a given translation."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from lenses.measures.alti import alti
from lenses.measures.carried import carried_together
from lenses.measures.comparisons import rollout, value_zeroing
from lenses.measures.effect import Cut, Effects
from lenses.measures.gradients import saliency
from transformer.model.sites import AttentionKind
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator
from transformer.trace.view import Array

CROSS = AttentionKind.CROSS
Measure = Callable[[Translator, Translation], Array]
"""(steps, source) the larger, the more the token of the step should need the source token."""


def layer_means(translator: Translator, run: Translation) -> Array:
    """Mean weight over all heads of cross-attention."""
    trace = run.attention
    assert trace is not None
    return np.mean([trace.weights(CROSS, layer).mean(0) for layer in _layers(translator)], axis=0)


def last_layer(translator: Translator, run: Translation) -> Array:
    """Mean weight over the heads of the last layer's cross-attention."""
    assert run.attention is not None
    found: Array = run.attention.weights(CROSS, _layers(translator)[-1]).mean(0)
    return found


def one_head(translator: Translator, run: Translation) -> Array:
    """Weights of one head, chosen by chance for each sentence."""
    chosen = random.Random(run.source_text)
    layer, head = chosen.choice(_layers(translator)), chosen.randrange(translator.config.n_heads)
    return run.weights(CROSS, layer, head)


def lengths(translator: Translator, run: Translation) -> Array:
    """Lengths of what all heads of a layer carried, summed over the layers (Kobayashi et al. 2020)."""
    found = [carried_together(translator.model, run, CROSS, layer) for layer in _layers(translator)]
    return np.sum(found, axis=0)


def shares(translator: Translator, run: Translation) -> Array:
    """ALTI+ (Ferrando et al. 2022)."""
    return alti(translator.model, run).source


def rolled(_translator: Translator, run: Translation) -> Array:
    """Attention rollout (Abnar and Zuidema 2020)."""
    return rollout(run)[0]


def zeroed(translator: Translator, run: Translation) -> Array:
    """How far a layer's output turns without the token's value, over all layers (Mohebbi et al. 2023)."""
    found = [value_zeroing(translator.model, run, CROSS, layer) for layer in _layers(translator)]
    return np.sum(found, axis=0)


def gradients(translator: Translator, run: Translation) -> Array:
    """|gradient × input| of the logit of the token against that of the runner-up (Yin and Neubig 2022)."""
    found = []
    for at, step in enumerate(run.steps):
        others = [each.token_id for each in step.alternatives if each.token_id != step.token_id]
        against = others[0] if others else None
        found.append(np.abs(saliency(translator, run, at, step.token_id, against, False).source))
    return np.stack(found)


def effects(translator: Translator, run: Translation) -> Array:
    """−Δ log p if the token is hidden from the whole decoder: what deletion measures, one token deep."""
    cuts = [(Cut(CROSS, (key,)),) for key in range(len(run.source_tokens))]
    found: Array = (-Effects(translator, run).of(cuts)).T.float().numpy()
    return found


def chance(translator: Translator, run: Translation) -> Array:
    """Numbers by chance."""
    shape = len(run.steps), len(run.source_tokens)
    found: Array = np.random.default_rng(len(run.source_text)).random(shape, dtype=np.float32)
    return found


def _layers(translator: Translator) -> range:
    return range(translator.config.sites[CROSS].n_layers)


MEASURES: dict[str, Measure] = {
    "random": chance,
    "one random head": one_head,
    "weights, all heads": layer_means,
    "weights, last layer": last_layer,
    "carried": lengths,
    "rollout": rolled,
    "value zeroing": zeroed,
    "ALTI+": shares,
    "gradient × input": gradients,
    "effect": effects,
}
"""The measures by name; the first is what the others are compared with."""
