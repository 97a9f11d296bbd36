"""A visitor's order for a training: a task, sizes within bounds, and perhaps pairs of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from explorer.app.server.pairs import LARGEST, read_upload
from transformer.storage.description import TOKENIZER_FILE
from transformer.storage.files import write_atomically
from transformer.text.kinds import Checked, one_of, whole
from transformer.text.pairs import DataError, ReadBounds, SentencePair, read_pairs
from transformer.text.tokenizer import Tokenizer, TokenizerError
from transformer.text.typed import clean
from transformer.training.data import encode_pairs
from transformer.training.toys import LENGTHS, TOYS, toy_data

OWN = "own"
"""The task of learning the visitor's own pairs."""
TASKS = (*TOYS, OWN)
WIDTHS = (32, 48, 64, 96, 128)
HEADS = (1, 2, 4, 8)
LAYERS = (1, 2, 3)
STEPS = (100, 5_000)
BOUNDS = ReadBounds(total=LARGEST, line=8 * 2**10, lines=20_000)
FEWEST, MOST_HELD_OUT, HELD_OUT = 20, 200, 10
"""Fewest different pairs of a file; one in ten of them is held out, but not more than this."""
TRAIN_FILE, VALID_FILE = "train.tsv", "valid.tsv"
_VOCABULARY, _LONGEST = 1_000, 64
_WIDE = 64
"""Wider models learn with a smaller rate."""


@dataclass(frozen=True, kw_only=True)
class Plan(Checked):
    """A task and sizes.

    ValueError if a value is out of bounds; the message says which.
    """

    task: Annotated[str, one_of(*TASKS)] = "copy"
    # most letters of a sequence, if the task has such
    length: Annotated[int, whole(*LENGTHS)] = 8
    width: Annotated[int, one_of(*WIDTHS)] = (
        48  # d_model; the feed-forward network is twice as wide
    )
    heads: Annotated[int, one_of(*HEADS)] = 4  # heads per layer
    layers: Annotated[int, one_of(*LAYERS)] = 2  # layers of the encoder, and of the decoder
    steps: Annotated[int, whole(*STEPS)] = 1_000  # steps of training

    def arguments(
        self,
        output: str,  # the directory to write; the pairs of the visitor lie beside it
    ) -> list[str]:
        """The command that trains, after ``python -m transformer``."""
        often = max(20, self.steps // 40)
        numbers = {
            "d-model": self.width,
            "d-ff": 2 * self.width,
            "n-heads": self.heads,
            "n-encoder-layers": self.layers,
            "n-decoder-layers": self.layers,
            "steps": self.steps,
            "learning-rate": 0.005 if self.width <= _WIDE else 0.003,
            "evaluate-every": often,
            "checkpoint-every": often,
        }
        options = [
            argument for name, value in numbers.items() for argument in (f"--{name}", f"{value:g}")
        ]
        data = ["--toy", self.task, "--toy-length", str(self.length)]
        if self.task not in TOYS:
            data = [
                "--preset",
                "toy",
                "--train",
                TRAIN_FILE,
                "--valid",
                VALID_FILE,
                "--languages",
                "und,und",
            ]
            data += ["--tokenizer", TOKENIZER_FILE, "--max-length", str(_LONGEST)]
            data += ["--dropout", "0.1", "--label-smoothing", "0.1"]
        return ["train", *data, "--output", output, *options]


@dataclass(frozen=True)
class Pairs:
    """A visitor's pairs, and the vocabulary that spells them."""

    train: Sequence[SentencePair]  # to train on
    valid: Sequence[SentencePair]  # held out
    tokenizer: Tokenizer  # of those to train on

    def write(self, folder: Path) -> None:
        """Writes each as a file, which the command reads; OSError if the disk is full."""
        write_atomically(folder / TOKENIZER_FILE, self.tokenizer.serialized)
        for name, pairs in ((TRAIN_FILE, self.train), (VALID_FILE, self.valid)):
            text = "".join(f"{pair.source}\t{pair.target}\n" for pair in pairs)
            write_atomically(folder / name, text.encode())


def own_pairs(name: str, content: bytes) -> Pairs:
    """Reads a visitor's file.

    DataError if the file is too large, has too few pairs, is not in the format, or cannot be
    learned here.
    """
    read = read_upload(name, content, read_pairs, BOUNDS)
    cleaned = (SentencePair(clean(pair.source), clean(pair.target)) for pair in read)
    pairs = list({pair.source: pair for pair in cleaned if pair.source and pair.target}.values())
    if len(pairs) < FEWEST:
        raise DataError(
            f"The file has {len(pairs)} different pairs; training needs at least {FEWEST}."
        )
    every = max(HELD_OUT, -(-len(pairs) // MOST_HELD_OUT))
    train = [pair for i, pair in enumerate(pairs) if i % every]
    valid = pairs[::every]
    try:
        texts = (text for pair in train for text in (pair.source, pair.target))
        tokenizer = Tokenizer.train(texts, _VOCABULARY, at_most=True)
        for pairs_of_part in (train, valid):
            encode_pairs(pairs_of_part, tokenizer).up_to(_LONGEST)  # as the command does
    except TokenizerError as error:
        raise DataError(
            f"The pairs have more signs than {_VOCABULARY:,} pieces can spell."
        ) from error
    except DataError as error:
        raise DataError(
            "No pair that is learned, or none that is held out, has sides of fewer than "
            f"{_LONGEST} tokens; a model that is trained here reads no longer ones."
        ) from error
    return Pairs(train, valid, tokenizer)


@cache
def held_out(task: str, length: int) -> tuple[SentencePair, ...]:
    """The held-out pairs of a toy task."""
    return toy_data(task, length).valid


def example(plan: Plan, pairs: Pairs | None) -> SentencePair:
    """The held-out pair whose maps are shown while a model learns: the longest of a few."""
    pairs_held = held_out(plan.task, plan.length) if pairs is None else pairs.valid
    short = [pair for pair in pairs_held if len(pair.source) <= _LONGEST] or [pairs_held[0]]
    return max(short[:40], key=lambda pair: len(pair.source.split()))
