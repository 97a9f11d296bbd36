"""Nearest neighbours by cosine, and how far two lists of neighbours agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
