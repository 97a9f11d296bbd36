"""A training run with snapshots as `train` leaves it, without training: random weights that grow."""

from __future__ import annotations

from pathlib import Path

from random_models import random_model

from transformer.storage.directory import save_checkpoint
from transformer.text.vocabulary import Tokenizer
from transformer.training.runs.snapshots import save_snapshot

STEPS = (0, 4, 8, 16)


def write_run(folder: Path, tokenizer: Tokenizer, seed: int = 0, steps: tuple[int, ...] = STEPS) -> Path:
    """A model directory with a snapshot after each of some steps; the last one is the model itself."""
    sizes = {"vocab_size": tokenizer.vocab_size, "norm": "pre", "trained_length": 30}
    for i, step in enumerate(steps):
        model = random_model(seed, scale=0.05 + 0.1 * i, **sizes)
        save_snapshot(folder, step, model.state_dict())
    save_checkpoint(folder, model.config, model.state_dict(), tokenizer)
    return folder
