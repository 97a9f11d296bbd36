"""Embeddings on their way through a training: the neighbours of words, beside those by co-occurrence.

The distributional hypothesis (Harris 1954; Firth 1957) says that words in similar contexts have similar
meanings. A language model is told of contexts only; so if it holds, words that share contexts come to lie
together as training goes on. Rows are scaled to length 1 first, since neighbours are judged by cosine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lab.measurement import Json
from transformer.runs.bootstrap import rounded

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest neighbours of some words, nearest first."""

    ids: Ints  # (words, k) their ids
    cosines: Floats  # (words, k) cosine of each with the word


def nearest(cosines: Floats, chosen: Sequence[int], candidates: Sequence[int], k: int) -> Neighbours:
    """The k candidates of the highest cosine with each word, itself left out; ties go to the first."""
    if not 0 < k < len(candidates):
        raise ValueError(f"{k} neighbours cannot be taken from {len(candidates)} candidates.")
    among = np.asarray(candidates, np.int64)
    others = np.where(among[None, :] == np.asarray(chosen)[:, None], -np.inf, cosines)
    order = np.argsort(-others, axis=1, kind="stable")[:, :k]
    return Neighbours(among[order], np.take_along_axis(others, order, 1))


def shared(one: Neighbours, other: Neighbours) -> Floats:
    """(words,) share of each word's neighbours that are among those of the other list."""
    same = (one.ids[:, :, None] == other.ids[:, None, :]).any(2)
    return np.asarray(same.mean(1, dtype=np.float64))


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
