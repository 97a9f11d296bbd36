"""Computations with a language model for the study sections while a visitor waits: bounded, and then kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lab.language.inducing import random_pieces
from lab.language.induction import followers
from transformer.runs.language.generation import Generation
from ui.server import catalogue
from ui.server.stores import kept

LENGTH = 8
"""Pieces of the sequence that is drawn."""


@dataclass(frozen=True)
class Repetition:
    """Random pieces, said twice, as a model reads them."""

    run: Generation  # the reading; its rows are the pieces and the start token
    # (rows, keys) whether a key is the token after an earlier place of the row's own token
    followers: np.ndarray
    again: np.ndarray  # (rows,) which rows read the second copy


def repetition(name: str, seed: int) -> Repetition:
    """A sequence of ``LENGTH`` random pieces, said twice."""
    writer = catalogue.writer(name)

    def make() -> Repetition:
        sequence = random_pieces(writer.generator, LENGTH, 1, seed)
        ids = sequence.ids[0]
        run = writer.generator.force(writer.generator.pieces((*ids[1:].tolist(), writer.config.eos_id)))
        return Repetition(run, followers(ids) > 0, sequence.again)

    found: Repetition = kept("repeated").get((name, seed, id(writer)), make)
    return found
