"""Embeddings on their way through a training: a map with fixed axes, and the neighbours at each step.

The distributional hypothesis (Harris 1954; Firth 1957) says that words in similar contexts have similar
meanings. A language model is told of contexts only; so if it holds, words that share contexts come to lie
together as training goes on.

Rows are scaled to length 1 first, since neighbours are judged by cosine and length mostly tells how frequent
a piece is. The axes are the first two principal components of the drawn words in the last table. Every
snapshot is projected onto those axes, from the same origin, so that a word that moves on the map has moved.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lab.language.neighbours import Floats, Neighbours, nearest, shared
from lab.measurement import Json, listed
from transformer.runs.bootstrap import rounded

AXES = 2
MOST_BYTES = 10**6
Snapshots = Sequence[tuple[int, Floats]]
"""Steps of training, and the table of embeddings (vocabulary, d_model) after each."""


@dataclass(frozen=True, eq=False)
class Axes:
    """The plane of the map."""

    origin: Floats  # (d_model,) mean of the drawn words in the last table
    directions: Floats  # (2, d_model) principal components, of length 1, their largest coordinates positive

    @classmethod
    def of(cls, rows: Floats) -> Axes:
        """The principal components of rows (words, d_model)."""
        origin = rows.mean(0)
        directions = np.linalg.svd(rows - origin, full_matrices=False)[2][:AXES]
        largest = np.take_along_axis(directions, np.abs(directions).argmax(1)[:, None], 1)
        return cls(origin, directions * np.sign(largest))

    def points(self, rows: Floats) -> Floats:
        """(words, 2) places of rows (words, d_model) on the map."""
        return (rows - self.origin) @ self.directions.T

    def share(self, rows: Floats) -> Floats:
        """(2,) share of the variance of rows that lies along each axis."""
        centred = rows - rows.mean(0)
        return ((centred @ self.directions.T) ** 2).sum(0) / max(float((centred**2).sum()), 1e-30)


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


def embedding_maps(
    snapshots: Snapshots,  # in the order of their steps; at least one
    chosen: Sequence[int],  # ids of different pieces to draw; at least three
    candidates: Sequence[int],  # ids that may be neighbours
    pieces: Sequence[str],  # the text of every piece of the vocabulary
    k: int,  # number of neighbours
    company: Neighbours,  # neighbours of the chosen pieces by co-occurrence, to compare with
) -> Json:
    """The map and the neighbours of chosen pieces at every snapshot, as plain values for a JSON file.

    ``share`` is that of the variance, by axis; ``neighbours`` and ``company`` are places in ``names``;
    ``agree`` is the mean share of a word's neighbours that are among those of ``company``.
    """
    if not snapshots or len(set(chosen)) < AXES + 1:
        raise ValueError(f"A map needs a snapshot and at least {AXES + 1} different words.")
    rows = [unit_rows(table)[list(chosen)] for _, table in snapshots]
    found = [table_neighbours(table, chosen, candidates, k) for _, table in snapshots]
    axes, lists = Axes.of(rows[-1]), [*(each.ids for each in found), company.ids]
    used = np.unique(np.concatenate([ids.ravel() for ids in lists]))
    *places, near = (np.searchsorted(used, ids).tolist() for ids in lists)
    values = {
        "steps": [int(step) for step, _ in snapshots],
        "words": [pieces[id_] for id_ in chosen],
        "points": [listed(axes.points(each), 3) for each in rows],
        "share": [[rounded(part, 4) for part in axes.share(each)] for each in rows],
        "names": [pieces[id_] for id_ in used],
        "neighbours": places,
        "cosines": [listed(each.cosines, 3) for each in found],
        "company": near,
        "agree": [rounded(shared(each, company).mean(), 4) for each in found],
    }
    if (size := len(json.dumps(values, ensure_ascii=False).encode())) > MOST_BYTES:
        raise ValueError(f"The maps take {size:,} bytes, more than {MOST_BYTES:,}; choose fewer words.")
    return values
