"""Weights in 8 bits."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from random_models import random_model

from transformer.__main__ import main
from transformer.storage.directory import load_checkpoint, save_checkpoint, step_of
from transformer.storage.eight_bits import MOST, MULTIPLIER, packed, unpacked
from transformer.storage.files import CheckpointError
from transformer.storage.tensors import serialize_tensors

SRC, TGT = torch.tensor([[5, 7, 9, 0]]), torch.tensor([[60, 11, 12]])


def test_a_matrix_loses_at_most_half_a_step_of_its_row_and_a_vector_nothing():
    torch.manual_seed(0)
    state = {"w": torch.randn(6, 40) * torch.logspace(-3, 3, 6)[:, None], "b": torch.tensor([1 / 3, 0.5])}
    state["w"][2] = 0
    stored = packed(state)
    assert stored["w"].dtype == torch.int8
    found = dict(unpacked(Path("x"), stored))
    assert torch.equal(found["b"], state["b"])
    steps = state["w"].abs().amax(1) / MOST
    assert ((found["w"] - state["w"]).abs() <= 0.501 * steps[:, None]).all()
    again = packed(found)
    assert torch.equal(again["w"], stored["w"])
    assert torch.equal(dict(unpacked(Path("x"), again))["w"], found["w"])


@pytest.mark.parametrize("least", [1, 2, 3])
def test_a_matrix_that_was_in_8_bits_before_loses_nothing(least):
    numbers = torch.randint(-MOST, MOST + 1, (30, 20))
    numbers[numbers.abs() < least] = least
    weight = numbers.float() / torch.tensor(61.37193)
    found = dict(unpacked(Path("x"), packed({"w": weight})))["w"]
    assert torch.equal(found, weight)


def test_a_weight_that_is_not_finite_is_not_stored():
    with pytest.raises(CheckpointError, match="w has values"):
        packed({"w": torch.tensor([[1.0, torch.nan]])})


@pytest.fixture
def models(tmp_path, tokenizer):
    """A model in float16, and the same in 8 bits."""
    model = random_model(vocab_size=tokenizer.vocab_size)
    save_checkpoint(tmp_path / "half", model.config, model.state_dict(), tokenizer, card="# half", step=7)
    assert main(["compress", "--model", str(tmp_path / "half"), "--output", str(tmp_path / "new")]) == 0
    return tmp_path


def test_a_compressed_model_has_the_step_the_card_and_nearly_the_weights(models):
    half, new = load_checkpoint(models / "half"), load_checkpoint(models / "new")
    assert (new.card, step_of(models / "new")) == ("# half", 7)
    for name, weight in half.model.state_dict().items():
        least = weight.abs().amax(-1, keepdim=True) / MOST
        assert bool(((new.model.state_dict()[name] - weight).abs() <= least).all()), name


@pytest.mark.parametrize("damage", ["missing", "shape", "negative", "type"])
def test_8_bits_without_multipliers_of_their_own_are_refused(models, damage):
    name = "encoder.layers.0.self_attention.q_proj.weight"
    checkpoint = load_checkpoint(models / "half")
    stored = packed(checkpoint.model.state_dict())
    good = stored[name + MULTIPLIER]
    stored[name + MULTIPLIER] = {"shape": good[:3], "negative": -good, "type": good.half()}.get(damage, good)
    if damage == "missing":
        del stored[name + MULTIPLIER]
    (models / "half/model.safetensors").write_bytes(serialize_tensors(stored, {}))
    with pytest.raises(CheckpointError, match=r"8 bits, but no multipliers"):
        load_checkpoint(models / "half")
