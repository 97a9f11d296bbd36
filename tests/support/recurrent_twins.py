"""Small recurrent models and a Transformer as the app finds them, ."""

from pathlib import Path

from random_models import random_config, random_model, random_recurrent

from transformer.config import SCORE_RULES
from transformer.storage.directory import save_checkpoint
from transformer.text.tokenizer import Tokenizer


def write_recurrent(folder: Path, tokenizer: Tokenizer) -> Path:
    """Writes one random recurrent model for each score, a Transformer."""
    pieces = tokenizer.vocab_size
    for score in SCORE_RULES:
        model = random_recurrent(score, vocab_size=pieces)
        save_checkpoint(folder / "recurrent" / score, model.config, model.state_dict(), tokenizer)
    changes = {"vocab_size": pieces, "norm": "pre"}
    weights = random_model(scale=0.2, **changes).state_dict()
    save_checkpoint(folder / "positions" / "sinusoidal", random_config(**changes), weights, tokenizer)
    return folder
