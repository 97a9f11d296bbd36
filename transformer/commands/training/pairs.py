"""The pairs of `train`: files with weights, or a toy task."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from transformer.text.pairs import SentencePair, read_pairs
from transformer.training.augment import augmented
from transformer.training.toys.tasks import toy_data

MOST_WEIGHT = 100


def training_pairs(
    arguments: argparse.Namespace, shares: dict[str, float], seed: int
) -> tuple[Sequence[SentencePair], list[float] | None, Sequence[SentencePair], Sequence[str]]:
    """The training pairs with their weights, the validation pairs, and words for the vocabulary alone.

    ValueError if the arguments name no pairs, or both files and a toy task, or a file cannot be used.
    """
    if arguments.toy and (arguments.train or arguments.valid):
        raise ValueError("--toy makes its own pairs; leave out --train and --valid.")
    if arguments.toy:
        toy = toy_data(arguments.toy, arguments.toy_length, seed)
        return toy.train, None, toy.valid, toy.words
    if not (arguments.train and arguments.valid):
        raise ValueError("Give pairs to train on and to evaluate on: --train and --valid, or --toy.")
    pairs, weights = _mixture(arguments.train, shares, seed)
    return pairs, weights, [pair for path in arguments.valid for pair in read_pairs(path)], ()


def _mixture(
    files: list[str], shares: dict[str, float], seed: int
) -> tuple[list[SentencePair], list[float] | None]:
    """The pairs of all files and the extra pairs, with their weights; None if every weight is 1."""
    pairs: list[SentencePair] = []
    weights: list[float] = []
    for file in files:
        path, weight = _weighted(file)
        pairs += augmented(read_pairs(path), shares, seed)
        weights += [weight] * (len(pairs) - len(weights))
    return pairs, None if set(weights) == {1.0} else weights


def _weighted(file: str) -> tuple[str, float]:
    """Splits `FILE:WEIGHT`; an existing file whose name looks like that is not split."""
    path, colon, text = file.rpartition(":")
    if not colon or Path(file).exists():
        return file, 1.0
    try:
        weight = float(text)
    except ValueError:
        return file, 1.0
    if not 0 < weight <= MOST_WEIGHT:
        raise ValueError(f"The weight of {path} is {text}; it must be above 0 and at most {MOST_WEIGHT}.")
    return path, weight
