from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
import torch
from programs import main

from transformer.config import RecurrentConfig, Score
from transformer.recurrent import Recurrent
from transformer.text.pairs import SentencePair
from transformer.text.tokenizer import Tokenizer
from transformer.training.data import encode_pairs
from transformer.training.options import TrainingOptions
from transformer.training.trainer import Trainer, train
from transformer.translator import load_translator

WORDS = ("red", "big", "old", "new", "hot", "wet", "shy", "mad")
PAIRS = [
    SentencePair(f"{a} {b} {c}", f"{c} {b} {a}")
    for a in WORDS
    for b in WORDS
    for c in WORDS
    if len({a, b, c}) == 3
]


def command(folder: Path, score: str, *more: str) -> list[str]:
    pairs = folder / "pairs.tsv"
    if not pairs.exists():
        pairs.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in PAIRS), encoding="utf-8")
    made = ["train", "--preset", f"recurrent-{score}", "--train", str(pairs), "--valid", str(pairs)]
    made += ["--vocab-size", "280", "--d-model", "32", "--dropout", "0", "--batch-positions", "512"]
    return [*made, "--label-smoothing", "0", "--device", "cpu", "--bleu-sentences", "0", *more]


@pytest.mark.parametrize("score", get_args(Score))
def test_a_twin_of_every_score_learns_to_reverse_three_words(score: str, tmp_path: Path):
    run = tmp_path / "run"
    more = ["--steps", "250", "--warmup", "20", "--learning-rate", "1e-2", "--evaluate-every", "250"]
    assert main(command(tmp_path, score, *more, "--output", str(run))) == 0
    opened = load_translator(run)
    assert isinstance(opened.model, Recurrent)
    assert opened.config.score == score
    right = [opened.translate(pair.source, capture=False).text == pair.target for pair in PAIRS[::20]]
    assert sum(right) / len(right) > 0.8


def test_a_resumed_run_has_exactly_the_losses_of_an_uninterrupted_one(tmp_path: Path):
    data = encode_pairs(PAIRS, Tokenizer.train((pair.source for pair in PAIRS), 280))
    options = TrainingOptions(steps=8, warmup=2, batch_positions=256)

    def trainer() -> Trainer:
        torch.manual_seed(1)
        return Trainer(Recurrent(RecurrentConfig(vocab_size=280, d_model=16)), data, options)

    expected = [done.loss for done in train(trainer())]
    first = trainer()
    found = [first.advance().loss for _ in range(3)]
    state = first.state_tensors()
    second = trainer()
    second.load_state_tensors(state, 3)
    assert found + [done.loss for done in train(second)] == expected


def test_operations_count_every_matrix_that_a_position_passes():
    config = RecurrentConfig(vocab_size=50, d_model=16, score="additive")
    model = Recurrent(config)
    matrices = sum(
        p.numel() for p in (*model.encoder.parameters(), *model.decoder.parameters()) if p.dim() > 1
    )
    start = model.decoder.start.weight.numel()
    assert sum(config.products.values()) == matrices - start
