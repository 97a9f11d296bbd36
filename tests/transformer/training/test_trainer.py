from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from corpus import number_pairs
from torch import nn
from torch.nn import functional as F

from transformer.config import TransformerConfig
from transformer.model import Transformer
from transformer.storage.files import CheckpointError
from transformer.text.pairs import SentencePair
from transformer.text.tokenizer import Tokenizer
from transformer.training.data import EncodedPairs, encode_pairs, make_batch
from transformer.training.loss import ROWS_AT_ONCE, evaluate_loss, projected_loss
from transformer.training.options import TrainingOptions, learning_rate
from transformer.training.progress import TerminalLine, duration
from transformer.training.run import (
    LOG_FILE,
    STATE_FILE,
    Exported,
    RunDirectory,
    load_exported,
)
from transformer.training.trainer import ByteDropout, Trainer, TrainingStep, train

OPTIONS = TrainingOptions(
    steps=8, batch_positions=120, warmup=3, learning_rate=5e-3, evaluate_every=4, checkpoint_every=2
)


@pytest.fixture(scope="module")
def data(tokenizer: Tokenizer) -> EncodedPairs:
    return encode_pairs([SentencePair(*pair) for pair in number_pairs(60)], tokenizer)


@pytest.fixture
def exported(tokenizer: Tokenizer) -> Exported:
    return Exported(tokenizer, "the card", averaged=True)


def make_trainer(
    data: EncodedPairs, options: TrainingOptions = OPTIONS, **sizes: int | float | str
) -> Trainer:
    torch.manual_seed(options.seed)
    shape = {"vocab_size": 302, "d_model": 32, "d_ff": 48, "n_heads": 4, "norm": "pre"}
    shape |= {"n_encoder_layers": 1, "n_decoder_layers": 2} | sizes
    return Trainer(Transformer(TransformerConfig.from_dict(shape)), data, options)


def losses(trainer: Trainer) -> list[float]:
    return [done.loss for done in train(trainer)]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [7, ROWS_AT_ONCE[False] + 5])
def test_the_loss_and_its_gradients_are_those_of_pytorch(smoothing: float, rows: int) -> None:
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(rows, 16, generator=generator, requires_grad=True)
    weight = torch.randn(30, 16, generator=generator, requires_grad=True)
    labels = torch.randint(0, 30, (rows,), generator=generator)
    ours = projected_loss(features, weight, labels, smoothing)
    ours.backward()
    found = ours.detach(), features.grad, weight.grad
    features.grad = weight.grad = None
    theirs = F.cross_entropy(features @ weight.t(), labels, label_smoothing=smoothing, reduction="sum")
    theirs.backward()
    for one, other in zip(found, (theirs.detach(), features.grad, weight.grad), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_the_loss_takes_features_of_another_type_than_its_sums() -> None:
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(9, 8, generator=generator, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(12, 8, generator=generator, requires_grad=True)
    labels = torch.arange(9)
    projected_loss(features, weight, labels, 0.1).backward()
    found = features.grad, weight.grad
    features.grad = weight.grad = None
    F.cross_entropy(features @ weight.double().t(), labels, label_smoothing=0.1, reduction="sum").backward()
    torch.testing.assert_close(found, (features.grad, weight.grad), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shared_embeddings", [True, False])
@pytest.mark.parametrize("tied_embeddings", [True, False])
@pytest.mark.parametrize("output_bias", [True, False])
def test_the_trainer_has_the_loss_of_the_models_own_logits(
    data: EncodedPairs, shared_embeddings: bool, tied_embeddings: bool, output_bias: bool
) -> None:
    trainer = make_trainer(
        data,
        replace(OPTIONS, batch_positions=10_000, label_smoothing=0.0),
        dropout=0.0,
        shared_embeddings=shared_embeddings,
        tied_embeddings=tied_embeddings,
        output_bias=output_bias,
    )
    if trainer.model.output_bias is not None:
        nn.init.normal_(trainer.model.output_bias)
    weight, bias = trainer.model.projection
    features = torch.randn(5, 32)
    torch.testing.assert_close(trainer.model.logits(features), F.linear(features, weight, bias))
    expected = evaluate_loss(trainer.model, data, 10_000)
    before = {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
    assert trainer.advance().loss == pytest.approx(expected, rel=1e-5)
    changed = {name for name, tensor in trainer.model.state_dict().items() if not tensor.equal(before[name])}
    assert ("output_bias" in changed) == output_bias
    assert ("output.weight" in changed) != tied_embeddings
    assert ("target_embedding.weight" in changed) != shared_embeddings


def test_bfloat16_products_change_the_loss_little(data: EncodedPairs) -> None:
    exact = losses(make_trainer(data))
    trainer = make_trainer(data, replace(OPTIONS, precision="bfloat16"))
    assert losses(trainer) == pytest.approx(exact, rel=0.02)
    assert {parameter.dtype for parameter in trainer.model.parameters()} == {torch.float32}


def test_the_constant_schedule_can_be_extended_until_its_decay_begins() -> None:
    short = TrainingOptions(steps=100, warmup=10, decay_steps=20, learning_rate=1.0, schedule="constant")
    long = replace(short, steps=200)
    rates = [learning_rate(short, step, 8) for step in range(1, 101)]
    assert rates[:10] == pytest.approx([step / 10 for step in range(1, 11)])
    assert set(rates[9:80]) == {1.0}
    assert rates[80:] == pytest.approx([(20 - k) / 21 for k in range(20)])
    assert [learning_rate(long, step, 8) for step in range(1, 81)] == rates[:80]


def test_the_papers_schedule_rises_and_falls_with_the_square_root() -> None:
    options = replace(OPTIONS, schedule="inverse_sqrt", warmup=4000, learning_rate=1.0)
    assert learning_rate(options, 4000, 512) == pytest.approx((512 * 4000) ** -0.5)
    assert learning_rate(options, 2000, 512) == pytest.approx(learning_rate(options, 4000, 512) / 2)
    assert learning_rate(options, 16000, 512) == pytest.approx(learning_rate(options, 4000, 512) / 2)


def test_the_linear_schedule_peaks_after_the_warm_up_and_ends_near_zero() -> None:
    options = TrainingOptions(steps=100, warmup=10, learning_rate=1.0)
    rates = [learning_rate(options, step, 8) for step in range(1, 101)]
    assert rates[:10] == pytest.approx([step / 10 for step in range(1, 11)])
    assert max(rates) == 1.0
    assert 0 < rates[-1] < 0.02
    assert rates[9:] == sorted(rates[9:], reverse=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": 0},
        {"steps": 1.5},
        {"label_smoothing": 1.0},
        {"schedule": "cosine"},
        {"precision": "int8"},
        {"decay_steps": 0},
    ],
)
def test_impossible_options_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        TrainingOptions(**changes)  # type: ignore[arg-type]


def test_byte_dropout_drops_the_rounded_share_and_keeps_the_mean() -> None:
    torch.manual_seed(0)
    output = ByteDropout(0.1)(torch.ones(200_003))
    assert float((output == 0).float().mean()) == pytest.approx(26 / 256, abs=0.003)
    assert float(output.mean()) == pytest.approx(1, abs=0.004)
    assert len(output.unique()) == 2


def test_byte_dropout_repeats_with_the_generator_and_rests_in_evaluation() -> None:
    x = torch.randn(50)
    layer = ByteDropout(0.5)
    torch.manual_seed(3)
    first = layer(x)
    torch.manual_seed(3)
    assert torch.equal(first, layer(x))
    assert torch.equal(layer.eval()(x), x)


def test_a_trainer_on_a_cpu_uses_byte_dropout_everywhere(data: EncodedPairs) -> None:
    modules = list(make_trainer(data).model.modules())
    assert any(isinstance(module, ByteDropout) for module in modules)
    assert not any(isinstance(module, nn.Dropout) for module in modules)


def test_training_lowers_the_loss(data: EncodedPairs) -> None:
    trainer = make_trainer(data, replace(OPTIONS, steps=60, warmup=10))
    steps = list(train(trainer, data))
    assert steps[-1].loss < steps[0].loss - 2
    assert steps[-1].valid_loss is not None
    assert steps[-1].valid_loss < 2.5
    assert [done.step for done in steps] == list(range(1, 61))


def test_evaluation_happens_at_its_interval_and_at_the_end(data: EncodedPairs) -> None:
    steps = list(train(make_trainer(data, replace(OPTIONS, steps=6)), data))
    assert [done.step for done in steps if done.valid_loss is not None] == [4, 6]


def test_evaluation_changes_nothing(data: EncodedPairs) -> None:
    undisturbed = losses(make_trainer(data))
    assert [done.loss for done in train(make_trainer(data), data)] == undisturbed


def test_loss_per_token_does_not_depend_on_the_batches(data: EncodedPairs) -> None:
    model = make_trainer(data).model
    assert evaluate_loss(model, data, 50) == pytest.approx(evaluate_loss(model, data, 5000), rel=1e-5)


def test_evaluated_loss_is_the_mean_log_probability(data: EncodedPairs) -> None:
    model = make_trainer(data).model.eval().requires_grad_(False)
    total, tokens = 0.0, 0
    for batch in data.in_order(60):
        log_probs = model(batch.src_ids, batch.tgt_input_ids).log_softmax(-1)
        chosen = log_probs.gather(2, batch.tgt_ids[..., None])[..., 0][batch.tgt_ids != 0]
        total, tokens = total - float(chosen.sum()), tokens + len(chosen)
    assert evaluate_loss(model, data, 60) == pytest.approx(total / tokens, rel=1e-5)


def test_accumulated_batches_make_the_step_of_one_large_batch(tokenizer: Tokenizer) -> None:
    same = encode_pairs([SentencePair("one two", "eins zwei")] * 8, tokenizer)
    row = same.longest
    options = replace(OPTIONS, batch_positions=8 * row, steps=3)
    whole = make_trainer(same, options, dropout=0.0)
    parts = make_trainer(same, replace(options, batch_positions=4 * row, accumulate=2), dropout=0.0)
    assert losses(parts) == pytest.approx(losses(whole), rel=1e-4)


def test_gradients_are_clipped(data: EncodedPairs) -> None:
    trainer = make_trainer(data, replace(OPTIONS, clip=1e-9, weight_decay=0.0, steps=1, epsilon=1.0))
    before = trainer.model.embedding.weight.detach().clone()
    assert trainer.advance().gradient_norm > 0.01
    assert float((trainer.model.embedding.weight.detach() - before).abs().max()) < 1e-6


def test_the_average_follows_the_weights(data: EncodedPairs) -> None:
    trainer = make_trainer(data, replace(OPTIONS, steps=20))
    before = trainer.average["embedding.weight"].clone()
    losses(trainer)
    own, average = trainer.model.embedding.weight.detach(), trainer.average["embedding.weight"]
    assert 0 < float((own - average).norm()) < float((own - before).norm())
    measured = trainer.evaluate(data)
    assert measured["valid_loss"] != measured["valid_loss_average"]


@pytest.mark.parametrize("stop", [1, 3, 7])
def test_a_resumed_run_has_exactly_the_losses_of_an_uninterrupted_one(
    data: EncodedPairs, exported: Exported, tmp_path: Path, stop: int
) -> None:
    expected = make_trainer(data)
    expected_losses = losses(expected)
    first = make_trainer(data)
    found = [first.advance().loss for _ in range(stop)]
    RunDirectory(tmp_path, first, exported, "data").save_state()
    torch.manual_seed(99)
    second = make_trainer(data, replace(OPTIONS, seed=OPTIONS.seed))
    assert RunDirectory(tmp_path, second, exported, "data").load_state() == []
    found += losses(second)
    assert found == expected_losses
    for name, tensor in expected.state_tensors().items():
        assert torch.equal(tensor, second.state_tensors()[name]), name


def test_a_state_is_one_safetensors_file(data: EncodedPairs, exported: Exported, tmp_path: Path) -> None:
    trainer = make_trainer(data)
    trainer.advance()
    RunDirectory(tmp_path, trainer, exported, "data").save_state()
    assert [path.name for path in tmp_path.iterdir()] == [STATE_FILE]
    header = (tmp_path / STATE_FILE).read_bytes()
    assert json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")])["__metadata__"]["step"] == "1"


def test_a_state_holds_all_that_decides_what_is_exported(
    data: EncodedPairs, exported: Exported, tmp_path: Path
) -> None:
    RunDirectory(tmp_path, make_trainer(data), exported, "data").save_state()
    found = load_exported(tmp_path)
    assert found.tokenizer.to_bytes() == exported.tokenizer.to_bytes()
    assert (found.card, found.averaged) == ("the card", True)


def test_changed_options_are_named_when_a_run_continues(
    data: EncodedPairs, exported: Exported, tmp_path: Path
) -> None:
    RunDirectory(tmp_path, make_trainer(data), exported, "data").save_state()
    shorter = make_trainer(data, replace(OPTIONS, steps=5))
    assert RunDirectory(tmp_path, shorter, exported, "data").load_state() == ["steps"]


def test_a_state_of_other_data_or_another_model_is_refused(
    data: EncodedPairs, exported: Exported, tmp_path: Path
) -> None:
    RunDirectory(tmp_path, make_trainer(data), exported, "data").save_state()
    with pytest.raises(CheckpointError, match="other data"):
        RunDirectory(tmp_path, make_trainer(data), exported, "else").load_state()
    with pytest.raises(CheckpointError, match="a different shape"):
        RunDirectory(tmp_path, make_trainer(data, d_ff=64), exported, "data").load_state()


def test_a_damaged_or_missing_state_is_one_sentence(
    data: EncodedPairs, exported: Exported, tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match="no run to resume"):
        RunDirectory(tmp_path, make_trainer(data), exported, "data").load_state()
    RunDirectory(tmp_path, make_trainer(data), exported, "data").save_state()
    path = tmp_path / STATE_FILE
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(CheckpointError, match="cut off"):
        RunDirectory(tmp_path, make_trainer(data), exported, "data").load_state()


def test_a_log_forgets_the_steps_after_the_state(
    data: EncodedPairs, exported: Exported, tmp_path: Path
) -> None:
    done = TrainingStep(1, 2.0, 1e-3, 0.5, 100, 0.1)
    run = RunDirectory(tmp_path, make_trainer(data), exported, "data")
    with run.log() as write:
        for step in (1, 2, 3):
            write(replace(done, step=step))
    whole = (tmp_path / LOG_FILE).read_text(encoding="utf-8").replace('"loss": 2.0', '"loss": NaN', 1)
    (tmp_path / LOG_FILE).write_text(whole + '{"step": 4, "lo', encoding="utf-8")
    run.trainer.step = 2
    with run.log() as write:
        write(replace(done, step=3, valid_loss=1.5))
    lines = [json.loads(line) for line in (tmp_path / LOG_FILE).read_text(encoding="utf-8").splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3]
    assert lines[2]["valid_loss"] == 1.5
    assert "valid_loss" not in lines[1]


def test_progress_shows_loss_speed_and_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    progress = TerminalLine(100, 1e9, "a measured product")
    progress.show(TrainingStep(50, 2.0, 1e-3, 0.5, 100, 0.5, 2.5e8, valid_loss=1.25))
    line = capsys.readouterr().err
    assert (
        "50/100 · loss 2.000 · 200 tokens/s · 50 % of a measured product · 0:00:25 left · valid 1.250" in line
    )
    assert duration(3 * 3600 + 62) == "3:01:02"


def test_perplexity_of_an_untrained_model_is_about_the_vocabulary(data: EncodedPairs) -> None:
    assert math.exp(evaluate_loss(make_trainer(data).model, data, 500)) == pytest.approx(302, rel=0.9)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_training_on_cuda_lowers_the_loss(data: EncodedPairs) -> None:
    options = replace(OPTIONS, steps=60, warmup=10)
    torch.manual_seed(1)
    config = make_trainer(data).model.config
    trainer = Trainer(Transformer(config).cuda(), data, options)
    steps = list(train(trainer, data))
    assert steps[-1].loss < steps[0].loss - 2


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_batch_of_few_shapes_has_the_loss_and_gradient_of_the_others(data: EncodedPairs, norm: str) -> None:
    trainer = make_trainer(data, dropout=0.0, norm=norm)
    for name in ("plain", "filled"):
        batch = make_batch(data, range(5), 90 if name == "filled" else 0)
        assert (len(batch.src_ids) > 5) == (name == "filled")
        loss = trainer._loss(batch)
        loss.backward()
        found = loss.detach(), trainer.model.embedding.weight.grad.clone()
        trainer.model.zero_grad()
        if name == "plain":
            expected = found
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)


def test_positions_below_zero_do_not_count() -> None:
    features, weight = torch.randn(9, 8, requires_grad=True), torch.randn(12, 8, requires_grad=True)
    labels = torch.tensor([3, -1, 0, 11, -1, 5, 5, 2, -1])
    projected_loss(features, weight, labels, 0.1).backward()
    found = features.grad, weight.grad
    features.grad = weight.grad = None
    expected = F.cross_entropy(
        features @ weight.t(), labels, label_smoothing=0.1, reduction="sum", ignore_index=-1
    )
    expected.backward()
    torch.testing.assert_close(found, (features.grad, weight.grad), rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("accumulate", [1, 2])
def test_recorded_steps_are_those_that_are_launched(
    data: EncodedPairs, accumulate: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, found = replace(OPTIONS, steps=12, accumulate=accumulate), []
    for most in (0, 100):
        monkeypatch.setattr("transformer.training.trainer.MOST_GRAPHS", most)
        torch.manual_seed(1)
        config = replace(make_trainer(data).model.config, dropout=0.0)
        torch.manual_seed(2)
        trainer = Trainer(Transformer(config).cuda(), data, options)
        found.append([done.loss for done in train(trainer, data)])
        assert any(trainer._graphs.values()) == bool(most)
    assert found[0] == pytest.approx(found[1], rel=1e-3)
