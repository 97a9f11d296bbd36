"""Small positional and recurrent twins as the app finds them, and what was measured on them."""

import shutil
from pathlib import Path

from random_models import random_config, random_model, random_recurrent

from transformer.config import SCORE_RULES
from transformer.encodings import REGISTRY
from transformer.storage.directory import save_checkpoint
from transformer.text.tokenizer import Tokenizer

RESULTS = Path(__file__).parents[2] / "assets" / "models" / "positions" / "results.json"


def write_twins(folder: Path, tokenizer: Tokenizer) -> Path:
    """Writes one random twin for each encoding and the results of the experiments on them."""
    for name in REGISTRY:
        changes = {
            "vocab_size": tokenizer.vocab_size,
            "positions": name,
            "norm": "pre",
            "max_positions": 300,
        }
        model = random_model(scale=0.2, **changes)
        save_checkpoint(
            folder / "positions" / name, random_config(**changes), model.state_dict(), tokenizer
        )
    shutil.copy(RESULTS, folder / "positions")
    return folder


def write_recurrent(folder: Path, tokenizer: Tokenizer) -> Path:
    """Writes one random recurrent model for each score, a Transformer."""
    pieces = tokenizer.vocab_size
    for score in SCORE_RULES:
        model = random_recurrent(score, vocab_size=pieces)
        save_checkpoint(folder / "recurrent" / score, model.config, model.state_dict(), tokenizer)
    changes = {"vocab_size": pieces, "norm": "pre"}
    weights = random_model(scale=0.2, **changes).state_dict()
    save_checkpoint(
        folder / "positions" / "sinusoidal", random_config(**changes), weights, tokenizer
    )
    return folder
