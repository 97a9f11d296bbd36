"""The induction heads of one language model: their scores, what repetition saves, what losing them costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from lab.language.ablation import Measure, controls, costs, on_copies, on_text, switched_off
from lab.language.induction import Floats, Repeated, copying, head_scores, ranked
from lab.measurement import Json
from transformer.model.sites import AttentionKind
from transformer.runs.bootstrap import rounded
from transformer.runs.language.corpus import piece_log_probs
from transformer.runs.language.generator import TextGenerator
from transformer.text.vocabulary import N_BYTE_PIECES, N_SPECIAL_PIECES

LENGTH, COUNT = 25, 50
SIZES = (1, 2, 4)
"""Numbers of heads with the highest scores that are switched off together."""


def random_pieces(
    generator: TextGenerator, length: int = LENGTH, count: int = COUNT, seed: int = 1
) -> Repeated:
    """Repeated sequences of ordinary pieces: neither special ones nor single bytes."""
    config = generator.config
    ordinary = range(N_SPECIAL_PIECES + N_BYTE_PIECES, config.vocab_size)
    return Repeated.drawn(ordinary, config.bos_id, length, count, seed=seed)


def all_weights(generator: TextGenerator, ids: Sequence[int]) -> Floats:
    """(layers, heads, n, n) weights of a sequence of n ids, the start token included."""
    trace = generator.force((*ids[1:], generator.config.eos_id)).attention
    assert trace is not None
    layers = range(generator.config.n_layers)
    return np.stack([trace.weights(AttentionKind.DECODER, layer) for layer in layers])


def measure_induction(generator: TextGenerator, texts: Sequence[str]) -> Json:
    """Scores of all heads on repeated random pieces, and what the best cost there and on held-out texts."""
    sequences = random_pieces(generator)
    scores = head_scores(lambda ids: all_weights(generator, ids), sequences)
    whole = copying(lambda ids: piece_log_probs(generator, np.array([ids]))[0], sequences)
    measures = {"copies": on_copies(generator, sequences), "text": on_text(generator, texts)}
    order = [(layer, head) for layer, head, _ in ranked(scores.induction)]
    return {
        "length": sequences.length,
        "sequences": len(sequences.ids),
        "texts": len(texts),
        "scores": {
            "induction": _table(scores.induction),
            "previous": _table(scores.previous),
            "even_induction": rounded(scores.even_induction),
            "even_previous": rounded(scores.even_previous),
        },
        "copying": asdict(whole),
        "ablations": [
            {"heads": heads, "changes": [str(each) for each in switched_off(heads)]}
            | _costs(generator, measures, heads)
            for heads in (order[:size] for size in SIZES)
        ],
    }


def _costs(generator: TextGenerator, measures: dict[str, Measure], heads: list[tuple[int, int]]) -> Json:
    others = controls(heads, generator)
    return {name: costs(measure, heads, others) for name, measure in measures.items()}


def _table(values: Floats) -> list[list[float]]:
    return [[rounded(value, 4) for value in row] for row in values]
