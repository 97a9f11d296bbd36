"""Adam's arithmetic, against the state of torch's optimiser and against the weights that it made."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from corpus import number_pairs, write_pairs
from programs import main

from lab.studies.adam import PARAMETER, PLACE, PRESET, Recording, moments, record
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.storage.files import read_json
from transformer.storage.typed import typed
from transformer.text.pairs import SentencePair
from transformer.text.vocabulary import Tokenizer
from transformer.training.batches import encode_pairs
from transformer.training.options import TrainingOptions
from transformer.training.presets import PRESETS
from transformer.training.trainer import Trainer

SHIPPED = Path(__file__).parents[3] / "assets" / "adam.json"


def make_trainer(tokenizer: Tokenizer, steps: int) -> Trainer:
    torch.manual_seed(1)
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size,
        d_model=16,
        d_ff=16,
        n_heads=2,
        n_encoder_layers=1,
        n_decoder_layers=1,
    )
    data = encode_pairs([SentencePair(*pair) for pair in number_pairs(60)], tokenizer)
    options = TrainingOptions(steps=steps, warmup=5, batch_positions=120, weight_decay=0.1)
    return Trainer(Transformer(config), data, options)


def test_both_means_are_those_of_torch_s_optimiser(tokenizer: Tokenizer):
    trainer = make_trainer(tokenizer, 40)
    found = record(trainer, PARAMETER, (2, 3))
    last = moments(found)[-1]
    state = trainer.optimizer.state[dict(trainer.model.named_parameters())[PARAMETER]]
    assert last.step == int(state["step"]) == 40
    assert last.mean == pytest.approx(float(state["exp_avg"][2, 3]), rel=1e-5, abs=1e-9)
    assert last.square == pytest.approx(float(state["exp_avg_sq"][2, 3]), rel=1e-5, abs=1e-12)


def test_the_steps_are_the_changes_of_the_weight(tokenizer: Tokenizer):
    found = record(make_trainer(tokenizer, 20), PARAMETER, (0, 1))
    assert_consistent(found)


def assert_consistent(found: Recording) -> None:
    """Each weight is the one before with Adam's step and weight decay."""
    steps = moments(found)
    for each, before, after in zip(steps, found.weights, found.weights[1:], strict=False):
        assert after - before == pytest.approx(each.update + each.decay, abs=1e-7)
    assert max(abs(each.update) for each in steps) > 1e-5


def test_recording_changes_nothing_of_a_run(tokenizer: Tokenizer):
    watched, alone = make_trainer(tokenizer, 4), make_trainer(tokenizer, 4)
    torch.manual_seed(2)
    record(watched, PARAMETER, (0, 0))
    torch.manual_seed(2)
    while alone.step < 4:
        alone.advance()
    for one, other in zip(watched.model.parameters(), alone.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_first_step_is_the_sign_of_the_gradient_times_the_rate(tokenizer: Tokenizer):
    first = moments(record(make_trainer(tokenizer, 1), PARAMETER, (0, 0)))[0]
    sign = 1 if first.gradient > 0 else -1
    assert first.update == pytest.approx(-sign * first.rate, rel=1e-4)
    assert (first.mean_before, first.square_before) == (0, 0)
    assert first.mean_corrected == pytest.approx(first.gradient)


@pytest.mark.skipif(not SHIPPED.is_file(), reason="the recording is not here")
def test_the_shipped_recording_is_of_the_preset_and_agrees_with_itself():
    found, options = typed(Recording, read_json(SHIPPED)), TrainingOptions(**PRESETS[PRESET].options)
    assert len(found.rates) == options.steps
    assert (found.beta1, found.beta2, found.epsilon) == (options.beta1, options.beta2, options.epsilon)
    assert (found.parameter, found.place) == (PARAMETER, PLACE)
    assert_consistent(found)


def test_the_command_writes_a_file_that_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(PRESETS[PRESET].options, "steps", 3)
    pairs = [(f"{a} {b} a good day", f"{b} {a} ein guter Tag") for a, b in number_pairs(300)]
    data = write_pairs(tmp_path / "pairs.tsv", pairs)
    monkeypatch.setitem(PRESETS[PRESET].sizes, "vocab_size", 300)
    assert main(["adam", "--data", str(data), "--output", str(tmp_path / "adam.json")]) == 0
    found = read_json(tmp_path / "adam.json")
    assert_consistent(typed(Recording, found))
    assert "pairs.tsv" in found["command"]


@pytest.mark.parametrize("damage", [{"weights": []}, {"rates": [], "gradients": [], "weights": []}], ids=str)
def test_a_recording_without_steps_or_of_unequal_ones_is_refused(damage: dict[str, object]):
    values = {
        "parameter": PARAMETER,
        "place": [0, 0],
        **{"beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9, "weight_decay": 0.01},
        **{"rates": [0.1], "gradients": [1.0], "weights": [2.0]},
    }
    assert typed(Recording, values).gradients == (1.0,)
    with pytest.raises(ValueError, match=r"unpack|1 to"):
        typed(Recording, values | damage)
