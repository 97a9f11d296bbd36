"""`python -m lab adam`: records what Adam does to one weight of a tiny model in training."""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path
from typing import Any

import torch

from lab.learning.moments import record, write_recording
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.text.pairs import both_sides, read_pairs
from transformer.text.vocabulary import Tokenizer
from transformer.training.batches import encode_pairs
from transformer.training.options import TrainingOptions
from transformer.training.presets import PRESETS
from transformer.training.trainer import Trainer

PRESET = "tiny"
PARAMETER, PLACE = "encoder.layers.0.self_attention.v_proj.weight", (0, 0)


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    text = "train the tiny preset and record what Adam does to one weight, for the page Training"
    parser: argparse.ArgumentParser = commands.add_parser("adam", help=text, description=text)
    parser.add_argument("--data", required=True, type=Path, metavar="FILE", help="source<TAB>target lines")
    parser.add_argument("--output", required=True, type=Path, metavar="FILE", help="JSON file to write")
    parser.set_defaults(run=write)


def write(arguments: argparse.Namespace) -> int:
    """`adam`: trains, and writes the weight, its gradient and the learning rate of every step."""
    trainer = tiny_trainer(arguments.data)
    found = record(trainer, PARAMETER, PLACE)
    about = {
        "command": f"python -m lab adam --data {arguments.data} --output {arguments.output}",
        "date": date.today().isoformat(),
        "run": f"preset {PRESET}, {len(trainer.data):,} pairs, torch {torch.__version__}",
    }
    write_recording(arguments.output, found, about)
    print(f"{len(found.rates):,} steps of {PARAMETER}. Wrote {arguments.output}.", flush=True)
    return 0


def tiny_trainer(data: Path) -> Trainer:
    """The preset's run on the pairs of a file, at its first step.

    Raises:
        ValueError: The file cannot be read, or is too small for the vocabulary.
    """
    preset, pairs = PRESETS[PRESET], read_pairs(data)
    options, config = TrainingOptions(**preset.options), TransformerConfig(**preset.sizes)
    tokenizer = Tokenizer.train(both_sides(pairs), config.vocab_size)
    torch.manual_seed(options.seed)
    return Trainer(Transformer(config), encode_pairs(pairs, tokenizer), options)
