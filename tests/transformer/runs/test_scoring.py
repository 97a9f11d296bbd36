"""Batched log-probabilities of given translations are those of forcing them one by one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from marian_models import SOURCE_WORDS, TARGET_WORDS, write_marian

from transformer import batches
from transformer.batches import forced_log_probs
from transformer.text.pairs import SentencePair, read_pairs
from transformer.translator import InputError, Translator, load_translator

BUNDLED = ["en-de", "en-pt", "positions/t5", "positions/rotary", "recurrent/additive"]

ROUNDED = 1e-4
"""In float32, a sentence alone is up to 8e-5 from float64 in these models; a batch rounds otherwise."""


def one_by_one(translator: Translator, pairs: list[SentencePair]) -> list[tuple[float, ...]]:
    return [translator.force(each.source, each.target, capture=False).log_probs for each in pairs]


def assert_alike(translator: Translator, pairs: list[SentencePair], limit: float = 1e-5) -> None:
    found = forced_log_probs(translator, pairs)
    for ours, theirs in zip(found, one_by_one(translator, pairs), strict=True):
        assert ours == pytest.approx(theirs, abs=limit)


@pytest.mark.parametrize("name", BUNDLED)
def test_a_batch_is_scored_as_its_sentences_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_POSITIONS", 1000)
    monkeypatch.setattr(batches, "MOST_LOGITS", 1 << 17)
    language = "pt" if "pt" in name else "de"
    pairs = read_pairs(f"assets/sample/tatoeba-en-{language}.tsv.gz")[:24]
    translator = load_translator(f"assets/models/{name}")
    assert_alike(translator, pairs, 1e-5 if language == "de" else ROUNDED)
    translator.model.double()
    assert_alike(translator, pairs)


@pytest.mark.parametrize("separate", [False, True])
def test_marian_s_padding_changes_nothing(tmp_path: Path, separate: bool) -> None:
    draw = random.Random(3)
    pairs = [
        SentencePair(
            " ".join(draw.choices(SOURCE_WORDS.split(), k=draw.randint(1, 8))),
            " ".join(draw.choices(TARGET_WORDS.split(), k=draw.randint(1, 8))),
        )
        for _ in range(20)
    ]
    assert_alike(load_translator(write_marian(tmp_path, separate=separate)), pairs)


def test_no_pair_gives_nothing_and_an_empty_side_is_refused() -> None:
    translator = load_translator("assets/models/en-de")
    assert forced_log_probs(translator, []) == []
    with pytest.raises(InputError, match="translation is empty"):
        forced_log_probs(translator, [SentencePair("The house", " ")])
