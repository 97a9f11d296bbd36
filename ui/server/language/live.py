"""Computations with a language model for the study sections while a visitor waits: bounded, and then kept."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lab.language.inducing import random_pieces
from lab.language.induction import followers
from transformer.runs.language.generation import Generation
from ui.server import catalogue
from ui.server.hosting import hosted
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


@dataclass(frozen=True)
class Read:
    """A sentence as a model reads it."""

    tokens: tuple[str, ...]  # its tokens, the end included
    bits: tuple[float, ...]  # the surprisal of each

    @property
    def total(self) -> float:
        """−log₂ of the probability of the whole sentence."""
        return math.fsum(self.bits)


def read(name: str, text: str) -> Read:
    """The surprisal of every token of a sentence.

    Raises:
        ValueError: the sentence is empty or too long.
    """
    hosted.check_texts(text)
    writer = catalogue.writer(name)

    def make() -> Read:
        run = writer.force("", text, capture=False)
        return Read(run.target_tokens, run.surprisals)

    found: Read = kept("pairs of sentences").get((name, text, id(writer)), make)
    return found
