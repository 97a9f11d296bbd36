"""What all tests share: one computing thread, and models made once per run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from closed_form import CASES, make_tokenizer, write_models
from random_models import random_model

from transformer.tokenizer import Tokenizer
from transformer.translator import Translator, load_translator

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """A real vocabulary: number words, and bytes for everything else."""
    return make_tokenizer()


@pytest.fixture(scope="session")
def closed_form_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Checkpoint directories by the names of ``closed_form.CASES``."""
    return write_models(tmp_path_factory.mktemp("closed-form"))


@pytest.fixture(scope="session", params=CASES)
def solved(request: pytest.FixtureRequest, closed_form_models: dict[str, Path]) -> Translator:
    """Each closed-form model, opened as a visitor would; its name is a key of ``closed_form.CASES``."""
    return load_translator(closed_form_models[request.param])


@pytest.fixture(scope="session")
def translator(tokenizer: Tokenizer) -> Translator:
    """A random pre-norm model with a real vocabulary: fluent in nothing, but every weight matters."""
    model = random_model(
        vocab_size=tokenizer.vocab_size, norm="pre", tied_embeddings=False, trained_length=30
    )
    return Translator(model, tokenizer, name="random")
