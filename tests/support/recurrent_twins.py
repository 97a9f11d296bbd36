"""Small recurrent models and a Transformer as the app finds them, and what was measured on them."""

from __future__ import annotations

from pathlib import Path

from corpus import number_pairs, write_pairs
from programs import main
from random_models import random_config, random_model, random_recurrent

from transformer.model.config import SCORE_RULES
from transformer.storage.directory import save_checkpoint
from transformer.text.vocabulary import Tokenizer


def write_recurrent(folder: Path, tokenizer: Tokenizer) -> Path:
    """Writes one random recurrent model for each score, a Transformer, and the results of the experiments."""
    pieces = tokenizer.vocab_size
    for score in SCORE_RULES:
        model = random_recurrent(score, vocab_size=pieces)
        save_checkpoint(folder / "recurrent" / score, model.config, model.state_dict(), tokenizer)
    changes = {"vocab_size": pieces, "norm": "pre"}
    weights = random_model(scale=0.2, **changes).state_dict()
    save_checkpoint(folder / "positions" / "sinusoidal", random_config(**changes), weights, tokenizer)
    data = write_pairs(folder / "pairs.tsv", number_pairs(9, seed=1))
    links = folder / "links.tsv"
    links.write_text("one two\ttwo one\t0-1 1p0\nthree\tthree\t0-0\n", encoding="utf-8")
    models = ["--models", str(folder / "recurrent"), "--reference", str(folder / "positions" / "sinusoidal")]
    files = ["--data", str(data), "--alignments", str(links)]
    assert main(["recurrent", *models, *files, "--lengths", "2", "4", "--repeats", "1"]) == 0
    return folder
