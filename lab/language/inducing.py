"""The induction heads of one language model: their scores, what repetition saves, what losing them costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.language.ablation import (
    Changes,
    Measure,
    controls,
    costs,
    on_copies,
    on_text,
    switched_off,
)
from lab.language.induction import (
    Copying,
    Floats,
    HeadScores,
    Ids,
    Repeated,
    copying,
    followers,
    head_scores,
    ranked,
)
from transformer.lenses.scores.bootstrap import rounded
from transformer.model.sites import AttentionKind
from transformer.runs.language.corpus import piece_log_probs
from transformer.runs.language.generator import TextGenerator
from transformer.text.vocabulary import N_BYTE_PIECES, N_SPECIAL_PIECES

LENGTH, COUNT = 25, 50
SIZES = (1, 2, 4)
"""How many of the heads with the highest scores are switched off together."""
Json = dict[str, Any]


def random_pieces(
    generator: TextGenerator, length: int = LENGTH, count: int = COUNT, seed: int = 1
) -> Repeated:
    """Repeated sequences of ordinary pieces: neither special ones nor single bytes."""
    config = generator.config
    ordinary = range(N_SPECIAL_PIECES + N_BYTE_PIECES, config.vocab_size)
    return Repeated.drawn(ordinary, config.bos_id, length, count, seed=seed)


def all_weights(generator: TextGenerator, ids: Sequence[int], changes: Changes = ()) -> Floats:
    """(layers, heads, n, n) weights of a sequence of n ids, the start token included."""
    trace = generator.force((*ids[1:], generator.config.eos_id), interventions=changes).attention
    assert trace is not None
    layers = range(generator.config.n_layers)
    return np.stack([trace.weights(AttentionKind.DECODER, layer) for layer in layers])


def measure_induction(
    generator: TextGenerator,  # the model
    texts: Sequence[str],  # held-out texts
) -> Json:
    """Scores of all heads on repeated random pieces, and the cost of switching off the best.

    Returns:
        ``length``, ``sequences``, ``texts``; ``scores`` (by pattern (layers × heads), and what
        even weights give), ``copying``, and ``ablations``: for the best 1, 2 and 4 heads ``heads`` and the
        costs on ``copies`` and ``text``.
    """
    sequences = random_pieces(generator)
    scores = head_scores(lambda ids: all_weights(generator, ids), sequences)
    whole = copying(lambda ids: piece_log_probs(generator, _batch(ids))[0], sequences)
    measures = {"copies": on_copies(generator, sequences), "text": on_text(generator, texts)}
    order = [(layer, head) for layer, head, _ in ranked(scores.induction)]
    return {
        "length": sequences.length,
        "sequences": len(sequences.ids),
        "texts": len(texts),
        "scores": _listed(scores),
        "copying": _copied(whole),
        "ablations": [_ablated(generator, measures, order[:size]) for size in SIZES],
    }


def measure_circuit(generator: TextGenerator) -> Json:
    """What the best induction head loses without the best previous-token head of the layers before it.

    Returns:
        ``length``, ``sequences``; ``reader`` and ``source``, the layer and head of the two, from 0; and for
        ``source`` switched off, beside every other head of its layer: ``elsewhere``, the share of the
        reader's weight that is not on the pattern, and ``copies``, the loss on the second copy. Without a
        layer before the reader, ``source`` is None and the last two are missing.
    """
    sequences = random_pieces(generator)
    scores = head_scores(lambda ids: all_weights(generator, ids), sequences)
    reader = ranked(scores.induction)[0][:2]
    found: Json = {
        "length": sequences.length,
        "sequences": len(sequences.ids),
        "reader": reader,
        "source": None,
    }
    if not reader[0]:
        return found
    source = ranked(scores.previous[: reader[0]])[0][:2]
    others = controls([source], generator)
    measures = {
        "elsewhere": _elsewhere(generator, sequences, reader),
        "copies": on_copies(generator, sequences),
    }
    return {**found, "source": source} | {
        name: costs(measure, [source], others) for name, measure in measures.items()
    }


def _elsewhere(generator: TextGenerator, sequences: Repeated, head: tuple[int, int]) -> Measure:
    """The weight of a head that is not on the pattern, and the number of its rows, by sequence."""

    def of_one(ids: Ids, changes: Changes) -> tuple[float, float]:
        weights = all_weights(generator, ids.tolist(), changes)[head]
        off = 1 - (weights * followers(ids)).sum(-1)[sequences.again]
        return float(off.sum()), float(len(off))

    return lambda changes: np.array([of_one(ids, changes) for ids in sequences.ids])


def _batch(ids: Sequence[int]) -> Ids:
    return np.array([ids], np.int64)


def _listed(scores: HeadScores) -> Json:
    return {
        "induction": _table(scores.induction),
        "previous": _table(scores.previous),
        "even_induction": rounded(scores.even_induction),
        "even_previous": rounded(scores.even_previous),
    }


def _table(values: Floats) -> list[list[float]]:
    return [[rounded(value, 4) for value in row] for row in values]


def _copied(found: Copying) -> Json:
    return {"first": found.first, "last": found.last, "gain": found.gain}


def _ablated(generator: TextGenerator, measures: dict[str, Measure], heads: list[tuple[int, int]]) -> Json:
    others = controls(heads, generator)
    found = {name: costs(measure, heads, others) for name, measure in measures.items()}
    return {"heads": heads, "changes": [str(each) for each in switched_off(heads)], **found}
