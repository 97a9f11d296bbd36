"""Embeddings on their way through a training: the neighbours of words, beside those by co-occurrence.

The distributional hypothesis (Harris 1954; Firth 1957) says that words in similar contexts have similar
meanings. A language model is told of contexts only; so if it holds, words that share contexts come to lie
together as training goes on. Rows are scaled to length 1 first, since neighbours are judged by cosine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lab.language.neighbours import Floats, Neighbours, nearest, shared
from lab.measurement import Json
from transformer.runs.bootstrap import rounded

Snapshots = Sequence[tuple[int, Floats]]
"""Steps of training, and the table of embeddings (vocabulary, d_model) after each."""


def unit_rows(table: Floats) -> Floats:
    """The rows of a table scaled to length 1; zero rows stay."""
    table = np.asarray(table, np.float64)
    lengths = np.linalg.norm(table, axis=-1, keepdims=True)
    return np.asarray(table / np.where(lengths > 0, lengths, 1))


def table_neighbours(
    table: Floats, chosen: Sequence[int], candidates: Sequence[int], k: int = 10
) -> Neighbours:
    """The k candidates whose embeddings have the highest cosine with each chosen piece's."""
    rows = unit_rows(table)
    return nearest(rows[list(chosen)] @ rows[list(candidates)].T, chosen, candidates, k)


def neighbours_in_training(
    snapshots: Snapshots,  # in the order of their steps; at least one
    chosen: Sequence[int],  # ids of different pieces
    candidates: Sequence[int],  # ids that may be neighbours
    pieces: Sequence[str],  # the text of every piece of the vocabulary
    k: int,  # number of neighbours
    company: Neighbours,  # neighbours of the chosen pieces by co-occurrence, to compare with
) -> Json:
    """Neighbours of chosen pieces at the first and the last snapshot, as plain values for a JSON file.

    ``neighbours`` and ``company`` are places in ``names``; ``agree`` is, for each snapshot, the mean share of
    a word's neighbours that are among those of ``company``.
    """
    if not snapshots or not chosen:
        raise ValueError("Neighbours need a snapshot and at least one word.")
    found = [table_neighbours(table, chosen, candidates, k) for _, table in snapshots]
    lists = [found[0].ids, found[-1].ids, company.ids]
    used = np.unique(np.concatenate([ids.ravel() for ids in lists]))
    *places, near = (np.searchsorted(used, ids).tolist() for ids in lists)
    return {
        "steps": [int(step) for step, _ in snapshots],
        "words": [pieces[id_] for id_ in chosen],
        "names": [pieces[id_] for id_ in used],
        "neighbours": places,
        "company": near,
        "agree": [rounded(shared(each, company).mean(), 4) for each in found],
    }
