"""Measures of a visitor's sentence: what weights carried and did, and why a token was written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import streamlit as st

from transformer import Translation
from transformer.lenses.measures.attribution import Attribution, attribution
from transformer.lenses.measures.carried import Carried, carried
from transformer.lenses.measures.drafts import DecoderLens, Draft, decoder_lens, drafts
from transformer.lenses.measures.effect import WAYS, Way, effect
from transformer.lenses.measures.gradients import Saliency, saliency
from transformer.lenses.measures.stream import Tell
from transformer.model.sites import AttentionKind
from transformer.trace.view import Array
from ui.linked_view import Head
from ui.server.analyses import retraced
from ui.server.catalogue import translator
from ui.server.runs import Asked
from ui.server.stores import kept

MOST_CELLS = 160
"""Cells whose effect is measured at once, each by a pass of its own: about two seconds at most."""


@dataclass(frozen=True, eq=False)
class Explained:
    """Measures of the cells of one head; not a number in rows that were not measured."""

    weights: Array  # (queries, keys)
    carried: Carried
    effects: dict[Way, Array]  # (queries, keys) Δ log p, by the way of taking the key away; all for some rows
    rows: tuple[int, ...]  # the rows for which the effect of a hidden key was measured


@dataclass(frozen=True, eq=False)
class Reasons:
    """Why one token and not another."""

    attribution: Attribution
    saliency: Saliency


def explained(
    asked: Asked, translation: Translation, kind: str, chosen: Head, row: int, step: int, tell: Tell
) -> Explained:
    """Measures of a head around a row; the encoder's are about the token of a step.

    Raises:
        UnmeasuredError: The measures are not defined for the model or the run.
    """

    def make() -> Explained:
        model, run = translator(asked.model), retraced(asked, translation)
        weights = run.weights(kind, *chosen)
        which = step if kind == AttentionKind.ENCODER else None
        rows = _around(row, *weights.shape)
        found: dict[Way, Array] = {"hidden": effect(model, run, kind, *chosen, "hidden", which, rows, tell)}
        found |= {way: effect(model, run, kind, *chosen, way, which, [row]) for way in WAYS[1:]}
        return Explained(weights, carried(model.model, run, kind, *chosen), found, rows)

    made: Explained = kept("explained").get((asked, id(translation), kind, chosen, row, step), make)
    return made


def _around(row: int, queries: int, keys: int) -> tuple[int, ...]:
    """As many rows around one as ``MOST_CELLS`` allows."""
    count = min(queries, max(1, MOST_CELLS // keys))
    start = min(max(0, row - count // 2), queries - count)
    return tuple(range(start, start + count))


def reasons(
    asked: Asked, translation: Translation, step: int, against: int, integrated: bool, tell: Tell
) -> Reasons:
    """Why the token of a step, and not another; raises as ``explained``."""

    def make() -> Reasons:
        model, run = translator(asked.model), retraced(asked, translation)
        token = run.steps[step].token_id
        return Reasons(
            attribution(model.model, run, step, token, against),
            saliency(model, run, step, token, against, integrated, tell),
        )

    made: Reasons = kept("explained").get((asked, id(translation), step, against, integrated), make)
    return made


def unfinished(asked: Asked, translation: Translation, tell: Tell) -> tuple[tuple[Draft, ...], DecoderLens]:
    """Drafts by encoder layer, and guesses by decoder layer; raises as ``explained``."""

    def make() -> tuple[tuple[Draft, ...], DecoderLens]:
        model, run = translator(asked.model), retraced(asked, translation)
        return drafts(model, run, tell), decoder_lens(model.model, run, model)

    made: tuple[tuple[Draft, ...], DecoderLens] = kept("explained").get((asked, id(translation)), make)
    return made


def through(found: Attribution, kind: str) -> Array | None:
    """(keys,) what all heads of a kind add through each key; None if the model lacks the kind."""
    split = found.keys.get(AttentionKind(kind))
    return None if split is None else np.asarray(split.sum((0, 1)))


@contextmanager
def progress(text: str) -> Iterator[Tell]:
    """A bar while something is measured; whoever clicks elsewhere ends the measurement."""
    bar = st.progress(0.0, text)
    yield lambda share: bar.progress(min(share, 1.0), text)
    bar.empty()
