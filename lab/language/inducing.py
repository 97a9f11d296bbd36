"""The induction heads of one language model: their scores, what repetition saves, what losing them costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from lab.language.ablation import Changes, Measure, controls, costs, on_copies, on_text, switched_off
from lab.language.induction import Floats, Ids, Repeated, copying, followers, head_scores, ranked
from lab.measurement import Json
from transformer.lenses.scores.bootstrap import rounded
from transformer.model.sites import AttentionKind
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


def all_weights(generator: TextGenerator, ids: Sequence[int], changes: Changes = ()) -> Floats:
    """(layers, heads, n, n) weights of a sequence of n ids, the start token included."""
    trace = generator.force((*ids[1:], generator.config.eos_id), interventions=changes).attention
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


def measure_circuit(generator: TextGenerator) -> Json:
    """Loss of the best induction head without the best previous-token head of the layers before it.

    ``elsewhere`` is the share of the reader's weight that is not on the pattern; without a layer before the
    reader there is no ``source`` to switch off.
    """
    sequences = random_pieces(generator)
    scores = head_scores(lambda ids: all_weights(generator, ids), sequences)
    reader = ranked(scores.induction)[0][:2]
    found = {"length": sequences.length, "sequences": len(sequences.ids), "reader": reader, "source": None}
    if not reader[0]:
        return found
    source = ranked(scores.previous[: reader[0]])[0][:2]
    elsewhere, copies = _elsewhere(generator, sequences, reader), on_copies(generator, sequences)
    lost = _costs(generator, {"elsewhere": elsewhere, "copies": copies}, [source])
    return {**found, "source": source} | lost


def _costs(generator: TextGenerator, measures: dict[str, Measure], heads: list[tuple[int, int]]) -> Json:
    others = controls(heads, generator)
    return {name: costs(measure, heads, others) for name, measure in measures.items()}


def _elsewhere(generator: TextGenerator, sequences: Repeated, head: tuple[int, int]) -> Measure:
    """The weight of a head that is not on the pattern, and the number of its rows, by sequence."""

    def of_one(ids: Ids, changes: Changes) -> tuple[float, float]:
        weights = all_weights(generator, ids.tolist(), changes)[head]
        off = 1 - (weights * followers(ids)).sum(-1)[sequences.again]
        return float(off.sum()), float(len(off))

    return lambda changes: np.array([of_one(ids, changes) for ids in sequences.ids])


def _table(values: Floats) -> list[list[float]]:
    return [[rounded(value, 4) for value in row] for row in values]
