"""Packed texts: nothing is lost, nothing is mixed, and the loss does not depend on the packing."""

from __future__ import annotations

import random
from array import array
from collections import Counter
from itertools import pairwise

import pytest
import torch
from random_models import random_language_model
from torch.nn import functional as F

from transformer.text.vocabulary import BOS_ID, EOS_ID, PAD_ID
from transformer.training.cost import step_flops
from transformer.training.objective import evaluate_loss
from transformer.training.options import TrainingOptions
from transformer.training.texts import PackedTexts, encode_texts
from transformer.training.trainer import Trainer, train


def some_texts(count: int = 60, longest: int = 30) -> list[array]:
    order = random.Random(4)
    lengths = [order.randint(1, longest) for _ in range(count)]
    return [array("i", [BOS_ID, *(order.randint(4, 39) for _ in range(n)), EOS_ID]) for n in lengths]


def predictions(batches) -> Counter:
    """Each (token read, token wanted) of some batches, without padding."""
    return Counter(
        pair
        for batch in batches
        for read, wanted in zip(batch.ids.tolist(), batch.wanted.tolist(), strict=True)
        for pair in zip(read, wanted, strict=True)
        if pair[1] != PAD_ID
    )


def test_every_token_is_predicted_once_from_the_one_before_it():
    texts = some_texts()
    expected = Counter(pair for text in texts for pair in pairwise(text))
    assert predictions(PackedTexts(texts, 16).in_order(64)) == expected


def test_an_epoch_of_training_has_every_text_once_and_the_next_in_another_order():
    data = PackedTexts(some_texts(), 32)
    batches = data.batches(64, seed=1, skip=0, every=1)
    epoch, needed = [], data.predicted
    while needed > 0:
        epoch.append(next(batches))
        needed -= epoch[-1].predicted
    assert needed == 0
    assert predictions(epoch) == predictions(data.in_order(64))
    again = [next(batches) for _ in range(2)]
    assert any(
        a.ids.shape != b.ids.shape or (a.ids != b.ids).any() for a, b in zip(again, epoch, strict=False)
    )


def test_batches_can_be_skipped_and_shared_among_processes():
    data = PackedTexts(some_texts(), 32)
    whole = [batch.ids.tolist() for batch, _ in zip(data.batches(64, 1, 0, 1), range(9), strict=False)]
    shared = [batch.ids.tolist() for batch, _ in zip(data.batches(64, 1, 3, 2), range(3), strict=False)]
    assert shared == whole[3:9:2]


def test_rows_are_mostly_full():
    batches = list(PackedTexts(some_texts(400), 64).in_order(640))
    cells = sum(batch.ids.numel() for batch in batches)
    assert sum(batch.predicted for batch in batches) / cells > 0.9


@pytest.mark.parametrize("row", [31, 64, 200])
def test_the_loss_does_not_depend_on_the_packing(row):
    model, texts = random_language_model(), some_texts(20)
    total = sum(
        float(F.cross_entropy(model(ids[None, :-1])[0], ids[1:], reduction="sum"))
        for ids in map(torch.tensor, texts)
    )
    expected = total / sum(len(text) - 1 for text in texts)
    assert evaluate_loss(model, PackedTexts(texts, row), 400) == pytest.approx(expected, rel=1e-5)


def test_a_text_longer_than_a_row_goes_on_in_another_row():
    (batch,) = PackedTexts([array("i", [BOS_ID, 5, 6, 7, 8, EOS_ID])], 2).in_order(100)
    assert sorted(batch.ids.tolist()) == [[BOS_ID, 5], [6, 7], [8, PAD_ID]]


def test_training_lowers_the_loss(tokenizer):
    data = encode_texts(
        ["one two three four five", "six five four", "seven one two three"] * 20, tokenizer, 32
    )
    model = random_language_model(vocab_size=tokenizer.vocab_size, dropout=0.0)
    options = TrainingOptions(
        steps=40, warmup=5, learning_rate=5e-3, batch_positions=256, label_smoothing=0.0, evaluate_every=20
    )
    steps = list(train(Trainer(model, data, options), data))
    assert steps[-1].valid_loss < 0.5 * steps[0].loss
    assert steps[0].flops > 0


def test_flops_are_those_of_the_matrices():
    model = random_language_model()
    (batch,) = PackedTexts([array("i", [BOS_ID, *range(4, 13), EOS_ID])], 10).in_order(10)
    d, inner, n = 32, model.config.d_ff, 10
    layer = n * (4 * d * d + 2 * d * inner + 2 * n * d)
    assert step_flops(model.config, batch) == 6 * (2 * layer + n * d * model.config.vocab_size)
