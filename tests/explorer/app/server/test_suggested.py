"""Suggested models: their sizes follow from what is published, and only those that fit are shown."""

from __future__ import annotations

from typing import Any

import pytest

from explorer.app.server import hub_models, memory, suggested
from transformer.config import TransformerConfig
from transformer.storage.description import parameter_count

LARGE = {"d_model": 1024, "d_ff": 4096, "n_heads": 16}
SIZES: dict[str, dict[str, Any]] = {
    "google-t5/t5-small": {"vocab_size": 32128},
    "Helsinki-NLP/opus-mt-en-de": {"vocab_size": 58101},
    "google/flan-t5-small": {
        **{"vocab_size": 32128, "d_ff": 1024, "head_width": 64, "n_heads": 6, "gated": True},
        **{"n_encoder_layers": 8, "n_decoder_layers": 8, "tied_embeddings": False},
    },
    "facebook/bart-base": {"vocab_size": 50265, "d_model": 768, "d_ff": 3072, "n_heads": 12},
    "google/flan-t5-base": {
        **{"vocab_size": 32128, "d_model": 768, "d_ff": 2048, "n_heads": 12, "gated": True},
        **{"n_encoder_layers": 12, "n_decoder_layers": 12, "tied_embeddings": False},
    },
    "sshleifer/distilbart-cnn-12-6": {"vocab_size": 50264, "n_encoder_layers": 12, **LARGE},
    "facebook/bart-large-cnn": {"vocab_size": 50264, "n_encoder_layers": 12, "n_decoder_layers": 12, **LARGE},
    "facebook/m2m100_418M": {
        **{"vocab_size": 128112, "n_encoder_layers": 12, "n_decoder_layers": 12, **LARGE},
    },
    "facebook/mbart-large-50-many-to-many-mmt": {
        **{"vocab_size": 250054, "n_encoder_layers": 12, "n_decoder_layers": 12, **LARGE},
    },
    "facebook/nllb-200-distilled-600M": {
        **{"vocab_size": 256206, "n_encoder_layers": 12, "n_decoder_layers": 12, **LARGE},
    },
}
"""Published sizes."""


@pytest.mark.parametrize("each", suggested.MODELS, ids=lambda each: each.name)
def test_parameters_follow_from_the_published_sizes(each: suggested.Suggested):
    config = TransformerConfig(**{"d_model": 512, "d_ff": 2048, "n_heads": 8} | SIZES[each.name])
    assert parameter_count(config) == pytest.approx(1e6 * each.millions, rel=0.02)


def test_only_what_fits_and_may_be_opened_is_suggested(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "available", lambda: 500_000_000)
    monkeypatch.setattr(hub_models, "is_allowed", lambda name: not name.startswith("google/"))
    names = [each.name for each in suggested.fitting()]
    assert names == ["google-t5/t5-small", "Helsinki-NLP/opus-mt-en-de"]
    monkeypatch.setattr(memory, "available", lambda: 0)
    assert suggested.fitting() == ()


def test_of_many_some_of_every_size_are_shown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "available", lambda: 10**12)
    monkeypatch.setattr(hub_models, "most_bytes", lambda: 10**12)
    monkeypatch.setattr(hub_models, "is_allowed", lambda name: True)
    found = suggested.fitting()
    assert len(found) == suggested.MOST
    assert found[-1].name == "facebook/nllb-200-distilled-600M"
    assert "CC BY-NC 4.0, not for commercial use" in found[-1].description
    assert [each.millions for each in found] == sorted(each.millions for each in found)
