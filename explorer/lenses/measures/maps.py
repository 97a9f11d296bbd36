"""A measure in the place of weights: a map whose numbers from 0 to 1 are what keys carried, or did."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from explorer.lenses.measures.carried import Carried
from explorer.lenses.measures.effect import Effects, Way, cells
from explorer.lenses.measures.stream import Tell, recorded, silent
from transformer.config import AttentionKind
from transformer.run import Translation
from transformer.translator import Translator
from transformer.view import Array, HeadMap, Window

ON_ALL = "effect_on_all"
"""Measure of the encoder's cells: Σ_t |Δ log p(y_t)|, because none of its queries predicts a token."""
LEAST = 0.1
"""Effect in nats that is drawn in full colour at least, so that a map of small effects stays pale."""


def shares(norms: Array) -> Array:
    """(queries, keys) what each key carried, as a share of its row's sum; 0 in a row that carried nothing."""
    total = norms.sum(-1, keepdims=True)
    return np.divide(norms, total, out=np.zeros_like(norms), where=total > 0)


def carried_map(view: HeadMap, found: Carried) -> HeadMap:
    """A map, or a window of one, with shares of what was carried for its weights (``carried``)."""
    part = view.window.queries, view.window.keys
    checks = view.audit.joined(replace(found.audit, claim=view.audit.claim))
    return replace(
        view, weights=shares(found.norms)[part], measure="carried", measured=found.norms[part], report=checks
    )


def effect_in(
    translator: Translator,
    run: Translation,
    kind: AttentionKind | str,
    layer: int,
    head: int,
    window: Window,
    way: Way = "hidden",
    tell: Tell = silent,
) -> Array:
    """(queries, keys) float32 effects (``effect``) of a window's cells on the token their query predicts.

    The encoder's are effects on all tokens, Σ_t |Δ log p(y_t)|. In nats; not a number where the mask hides.
    UnmeasuredError if the model is no Transformer, or something was changed in the run.
    """
    kind = AttentionKind(kind)
    rows, keys = range(window.query_start, window.query_stop), range(window.key_start, window.key_stop)
    cuts = [cut for cut in cells(run, kind, layer, head, way, rows) if cut.keys[0] in keys]
    shape = recorded(run).layer(kind, layer).shape[1:]
    made = np.full(shape, np.nan, dtype=np.float32)
    found = Effects(translator, run).of([(cut,) for cut in cuts], tell)
    for cut, row in zip(cuts, found, strict=True):
        assert cut.query is not None
        on_all = kind is AttentionKind.ENCODER
        made[cut.query, cut.keys[0]] = float(row.abs().sum() if on_all else row[cut.query])
    return made[window.queries, window.keys]


def effect_map(view: HeadMap, effects: Array) -> HeadMap:
    """A map, or a window of one, with shares of the largest effect for its weights (``effect_in``)."""
    known: Array = np.nan_to_num(np.abs(effects))
    measure = ON_ALL if view.predicted_tokens is None else "effect"
    strength: Array = known / np.float32(max(float(known.max(initial=0.0)), LEAST))
    return replace(view, weights=strength, measure=measure, measured=effects)


def from_runs(count: int) -> str:
    """What the badge of effects says: from how many further runs they are."""
    return f"from {count:,} run{'s' * (count != 1)}"
