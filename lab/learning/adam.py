"""`python -m lab adam`: records what Adam does to one weight of a tiny model in training."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import torch

from lab.learning.moments import record
from lab.measurement import Json, Pairs, measurement
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


@measurement()
def adam(data: Annotated[Pairs, "source<TAB>target lines"]) -> Json:
    """Trains the tiny preset and records what Adam does to one weight, for the page Training."""
    trainer = tiny_trainer(data)
    run = f"preset {PRESET}, {len(trainer.data):,} pairs, torch {torch.__version__}"
    return {"run": run} | asdict(record(trainer, PARAMETER, PLACE))


def tiny_trainer(data: Path) -> Trainer:
    """The preset's run on the pairs of a file, at its first step."""
    preset, pairs = PRESETS[PRESET], read_pairs(data)
    options, config = TrainingOptions(**preset.options), TransformerConfig(**preset.sizes)
    tokenizer = Tokenizer.train(both_sides(pairs), config.vocab_size)
    torch.manual_seed(options.seed)
    return Trainer(Transformer(config), encode_pairs(pairs, tokenizer), options)
