"""Training: loss and gradients, schedules, steps, exact resume, the files of a run, BLEU and
progress."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from closed_form import CASES
from corpus import number_pairs
from programs import main
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.batches import translate_all
from transformer.commands.evaluate import corpus_scores
from transformer.config import RecurrentConfig, TransformerConfig
from transformer.model import Transformer
from transformer.recurrent import Recurrent
from transformer.storage.files import CheckpointError
from transformer.text.pairs import SentencePair
from transformer.text.tokenizer import Tokenizer
from transformer.training.data import EncodedPairs, encode_pairs, make_batch
from transformer.training.loss import ROWS_AT_ONCE, evaluate_loss, projected_loss
from transformer.training.options import TrainingOptions, learning_rate
from transformer.training.progress import TerminalLine, duration
from transformer.training.quality import GreedyBleu, perplexity
from transformer.training.run import LOG_FILE, STATE_FILE, Exported, RunDirectory, load_exported
from transformer.training.trainer import ByteDropout, Trainer, TrainingStep, train
from transformer.translator import Translator, load_translator

OPTIONS = TrainingOptions(
    steps=8, batch_positions=120, warmup=3, learning_rate=5e-3, evaluate_every=4, checkpoint_every=2
)
PAIRS = [SentencePair(*pair) for pair in number_pairs(60)]
CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


@pytest.fixture(scope="module")
def data(tokenizer: Tokenizer) -> EncodedPairs:
    return encode_pairs(PAIRS, tokenizer)


def make_model(options: TrainingOptions = OPTIONS, **sizes: Any) -> Transformer:
    torch.manual_seed(options.seed)
    shape = {"vocab_size": 302, "d_model": 32, "d_ff": 48, "n_heads": 4, "norm": "pre"}
    shape |= {"n_encoder_layers": 1, "n_decoder_layers": 2} | sizes
    return Transformer(TransformerConfig(**shape))


def make_trainer(data: EncodedPairs, options: TrainingOptions = OPTIONS, **sizes: Any) -> Trainer:
    return Trainer(make_model(options, **sizes), data, options)


def losses(trainer: Trainer) -> list[float]:
    return [step.loss for step in train(trainer)]


# --- loss ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(
    ("rows", "dtype"), [(7, torch.float64), (ROWS_AT_ONCE[False] + 5, torch.float32)], ids=str
)
def test_the_loss_and_its_gradients_are_those_of_pytorch(
    smoothing: float, rows: int, dtype: torch.dtype
):
    """Labels below zero do not count; features may be of another type than the sums."""
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(rows, 16, generator=generator).to(dtype).requires_grad_()
    weight = torch.randn(30, 16, generator=generator).requires_grad_()
    labels = torch.randint(0, 30, (rows,), generator=generator)
    labels[::3] = -1
    parts: list[tuple[Tensor, ...]] = []
    for ours in (True, False):
        if ours:
            loss = projected_loss(features, weight, labels, smoothing)
        else:
            logits = features @ weight.to(dtype).t()
            options: dict[str, Any] = {
                "label_smoothing": smoothing,
                "reduction": "sum",
                "ignore_index": -1,
            }
            loss = F.cross_entropy(logits, labels, **options)
        loss.backward()
        parts.append((loss.detach().to(dtype), features.grad, weight.grad))
        features.grad = weight.grad = None
    torch.testing.assert_close(parts[0], parts[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("shared", "tied", "bias"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, True)],
)
def test_the_trainer_has_the_loss_of_the_models_own_logits(data: EncodedPairs, shared, tied, bias):
    options = replace(OPTIONS, batch_positions=10_000, label_smoothing=0.0)
    sizes = {"shared_embeddings": shared, "tied_embeddings": tied, "output_bias": bias}
    trainer = make_trainer(data, options, dropout=0.0, **sizes)
    if trainer.model.output_bias is not None:
        nn.init.normal_(trainer.model.output_bias)
    weight, shift = trainer.model.projection
    features = torch.randn(5, 32)
    torch.testing.assert_close(trainer.model.logits(features), F.linear(features, weight, shift))
    expected = evaluate_loss(trainer.model, data, 10_000)
    before = {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
    assert trainer.advance().loss == pytest.approx(expected, rel=1e-5)
    changed = {
        name
        for name, tensor in trainer.model.state_dict().items()
        if not tensor.equal(before[name])
    }
    assert ("output_bias" in changed) == bias
    assert ("output.weight" in changed) != tied
    assert ("target_embedding.weight" in changed) != shared


def test_evaluated_loss_is_the_mean_log_probability_in_any_batches(data: EncodedPairs):
    model = make_model().eval().requires_grad_(False)
    total, tokens = 0.0, 0
    for batch in data.in_order(60):
        log_probs = model(batch.src_ids, batch.tgt_input_ids).log_softmax(-1)
        chosen = log_probs.gather(2, batch.tgt_ids[..., None])[..., 0][batch.tgt_ids != 0]
        total = total - float(chosen.sum())
        tokens = tokens + len(chosen)
    for positions in (50, 60, 5000):
        assert evaluate_loss(model, data, positions) == pytest.approx(total / tokens, rel=1e-5)
    pieces = [4, 1, 8]  # each sentence has one end
    even = np.array([-(n + 1) * math.log(50) for n in pieces])
    assert perplexity(even, pieces) == pytest.approx(50)


def test_a_batch_of_few_shapes_has_the_loss_and_gradient_of_the_others(data: EncodedPairs):
    trainer = make_trainer(data, dropout=0.0)
    parts = []
    for positions in (0, 90):
        batch = make_batch(data, range(5), positions)
        assert (len(batch.src_ids) > 5) == bool(positions)
        loss = trainer._loss(batch)
        loss.backward()
        parts.append((loss.detach(), trainer.model.embedding.weight.grad.clone()))
        trainer.model.zero_grad()
    torch.testing.assert_close(parts[0], parts[1], rtol=1e-5, atol=1e-4)


# --- options and dropout -------------------------------------------------------------------------


def test_schedules_follow_their_formulas():
    constant = TrainingOptions(
        steps=100, warmup=10, decay_steps=20, learning_rate=1.0, schedule="constant"
    )
    rates = [learning_rate(constant, step, 8) for step in range(1, 101)]
    warm = [step / 10 for step in range(1, 11)]
    assert rates == pytest.approx([*warm, *[1.0] * 70, *((20 - k) / 21 for k in range(20))])
    longer = replace(constant, steps=200)  # which can be extended until its decay begins
    assert [learning_rate(longer, step, 8) for step in range(1, 81)] == rates[:80]
    paper = replace(constant, schedule="inverse_sqrt", warmup=4000)
    rates = [learning_rate(paper, step, 512) for step in (4000, 2000, 16000)]
    assert rates == pytest.approx([(512 * 4000) ** -0.5 * share for share in (1, 1 / 2, 1 / 2)])
    linear = TrainingOptions(steps=100, warmup=10, learning_rate=1.0)
    rates = [learning_rate(linear, step, 8) for step in range(1, 101)]
    assert rates == pytest.approx([*warm, *(k / 91 for k in range(90, 0, -1))])


def test_impossible_options_are_refused():
    wrong = {
        "steps": 0,
        "label_smoothing": 1.0,
        "schedule": "cosine",
        "precision": "int8",
        "decay_steps": 0,
    }
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=name):
            TrainingOptions(**{name: value})


def test_byte_dropout_drops_the_rounded_share_repeats_and_rests_in_evaluation(data: EncodedPairs):
    torch.manual_seed(0)
    output = ByteDropout(0.1)(torch.ones(200_003))
    assert float((output == 0).float().mean()) == pytest.approx(26 / 256, abs=0.003)
    assert float(output.mean()) == pytest.approx(1, abs=0.004)
    assert len(output.unique()) == 2
    x = torch.randn(50)
    layer = ByteDropout(0.5)
    outputs = []
    for _ in range(2):
        torch.manual_seed(3)
        outputs.append(layer(x))
    assert torch.equal(*outputs)
    assert torch.equal(layer.eval()(x), x)
    assert nn.Dropout not in {type(module) for module in make_trainer(data).model.modules()}


# --- steps ---------------------------------------------------------------------------------------


def test_training_lowers_the_loss_and_is_measured_at_its_interval(data: EncodedPairs):
    steps = [*train(make_trainer(data, replace(OPTIONS, steps=62, warmup=10)), data)]
    assert steps[-1].loss < steps[0].loss - 2
    assert [step.step for step in steps] == [*range(1, 63)]
    assert [step.step for step in steps if step.valid_loss is not None] == [*range(4, 62, 4), 62]
    assert steps[-1].valid_loss < 2.5
    undisturbed = losses(make_trainer(data))
    assert [step.loss for step in train(make_trainer(data), data)] == undisturbed, (
        "measuring changes nothing"
    )
    rounded = make_trainer(data, replace(OPTIONS, precision="bfloat16"))
    assert losses(rounded) == pytest.approx(undisturbed, rel=0.02)
    assert {parameter.dtype for parameter in rounded.model.parameters()} == {torch.float32}


def test_accumulated_batches_make_the_step_of_one_large_batch(tokenizer: Tokenizer):
    same = encode_pairs([SentencePair("one two", "eins zwei")] * 8, tokenizer)
    options = replace(OPTIONS, batch_positions=8 * same.longest, steps=3)
    halves = replace(options, batch_positions=4 * same.longest, accumulate=2)
    whole, parts = (losses(make_trainer(same, each, dropout=0.0)) for each in (options, halves))
    assert parts == pytest.approx(whole, rel=1e-4)


def test_gradients_are_clipped_and_the_average_follows_the_weights(data: EncodedPairs):
    trainer = make_trainer(
        data, replace(OPTIONS, clip=1e-9, weight_decay=0.0, steps=1, epsilon=1.0)
    )
    before = trainer.model.embedding.weight.detach().clone()
    assert trainer.advance().gradient_norm > 0.01
    assert float((trainer.model.embedding.weight.detach() - before).abs().max()) < 1e-6
    trainer = make_trainer(data, replace(OPTIONS, steps=20))
    before = trainer.average["embedding.weight"].clone()
    expected = before
    for update in (1, 2):  # after ten steps each, slowly only later
        for _ in range(10):
            trainer.advance()
        own = trainer.model.embedding.weight.detach()
        average = trainer.average["embedding.weight"]
        expected = own + min(OPTIONS.average_decay**10, update / (update + 9)) * (expected - own)
        torch.testing.assert_close(average, expected)
    assert 0 < float((own - average).norm()) < float((own - before).norm())
    measured = trainer.evaluate(data)
    assert measured["valid_loss"] != measured["valid_loss_average"]


# --- the files of a run --------------------------------------------------------------------------


@pytest.fixture
def exported(tokenizer: Tokenizer) -> Exported:
    return Exported(tokenizer, "the card", averaged=True)


@pytest.mark.parametrize(("stop", "recurrent"), [(1, False), (7, False), (3, True)])
def test_a_resumed_run_has_exactly_the_losses_of_an_uninterrupted_one(
    data: EncodedPairs, exported: Exported, tmp_path: Path, stop: int, recurrent: bool
):
    def trainer() -> Trainer:
        if not recurrent:
            return make_trainer(data)
        torch.manual_seed(1)
        return Trainer(Recurrent(RecurrentConfig(vocab_size=302, d_model=16)), data, OPTIONS)

    expected = trainer()
    expected_losses = losses(expected)
    first = trainer()
    parts = [first.advance().loss for _ in range(stop)]
    RunDirectory(tmp_path, first, exported, "data").save_state()
    torch.manual_seed(99)
    second = trainer()
    assert RunDirectory(tmp_path, second, exported, "data").load_state() == []
    assert parts + losses(second) == expected_losses
    for name, tensor in expected.state_tensors().items():
        assert torch.equal(tensor, second.state_tensors()[name]), name


def test_a_state_is_one_file_with_all_that_decides_what_is_exported(data, exported, tmp_path: Path):
    trainer = make_trainer(data)
    trainer.advance()
    RunDirectory(tmp_path, trainer, exported, "data").save_state()
    assert [path.name for path in tmp_path.iterdir()] == [STATE_FILE]
    opened = load_exported(tmp_path)
    assert opened.tokenizer.serialized == exported.tokenizer.serialized
    assert (opened.card, opened.averaged) == ("the card", True)
    shorter = make_trainer(data, replace(OPTIONS, steps=5))
    assert RunDirectory(tmp_path, shorter, exported, "data").load_state() == ["steps"]


@pytest.mark.parametrize("averaged", [False, True])
def test_the_weights_that_did_better_are_exported(data, exported, tmp_path: Path, averaged: bool):
    trainer = make_trainer(data)
    for _ in range(10):
        trainer.advance()
    RunDirectory(tmp_path, trainer, replace(exported, averaged=averaged), "data").save()
    weights = load_translator(tmp_path, "cpu").model.embedding.weight
    own = trainer.model.embedding.weight.half().float()  # as a file keeps them
    average = trainer.average["embedding.weight"].half().float()
    assert torch.equal(weights, average) == averaged
    assert torch.equal(weights, own) == (not averaged)


def test_a_state_of_something_else_or_damaged_or_missing_is_one_sentence(
    data, exported, tmp_path: Path
):
    def check(words: str, named: str = "data", **sizes: Any) -> None:
        with pytest.raises(CheckpointError, match=words):
            RunDirectory(tmp_path, make_trainer(data, **sizes), exported, named).load_state()

    check("no run to resume")
    RunDirectory(tmp_path, make_trainer(data), exported, "data").save_state()
    check("other data", "else")
    check("a different shape", d_ff=64)
    path = tmp_path / STATE_FILE
    path.write_bytes(path.read_bytes()[:500])
    check("cut off")


def test_a_log_forgets_the_steps_after_the_state(data, exported, tmp_path: Path):
    step = TrainingStep(1, 2.0, 1e-3, 0.5, 100, 0.1)
    run = RunDirectory(tmp_path, make_trainer(data), exported, "data")
    with run.log() as write:
        for number in (1, 2, 3):
            write(replace(step, step=number))
    whole = (
        (tmp_path / LOG_FILE).read_text(encoding="utf-8").replace('"loss": 2.0', '"loss": NaN', 1)
    )
    (tmp_path / LOG_FILE).write_text(whole + '{"step": 4, "lo', encoding="utf-8")
    run.trainer.step = 2
    with run.log() as write:
        write(replace(step, step=3, valid_loss=1.5))
    lines = [
        json.loads(line) for line in (tmp_path / LOG_FILE).read_text(encoding="utf-8").splitlines()
    ]
    assert [(line["step"], line.get("valid_loss")) for line in lines] == [
        (1, None),
        (2, None),
        (3, 1.5),
    ]


# --- BLEU and progress ---------------------------------------------------------------------------


def test_bleu_is_sacrebleu_s_of_the_greedy_translations_and_exact_is_exact(closed_form_models):
    translator = load_translator(closed_form_models["copy"])
    measure = GreedyBleu(PAIRS[:30], translator.tokenizer, 12, 40)
    assert len(measure.pairs) == 12
    longest = max(
        len(translator.ids(each)) + 1 for pair in PAIRS[:30] for each in (pair.source, pair.target)
    )
    sizes = [
        len(GreedyBleu(PAIRS[:30], translator.tokenizer, 30, longest - less).pairs)
        for less in (0, 1)
    ]
    assert sizes[1] < sizes[0] == 30
    outputs = translate_all(translator, [pair.source for pair in measure.pairs], 1)
    assert measure(translator.model)["bleu"] == corpus_scores(outputs, measure.pairs)["bleu"]
    words = CASES["copy"].sentence.split()
    texts = [" ".join(words[: i + 1]) for i in range(len(words))]
    own = [SentencePair(text, translator.translate(text).text) for text in texts]
    wrong = [SentencePair(own[0].source, f"{own[0].target} x"), *own[1:]]
    for pairs, share in ((own, 1.0), (wrong, 1 - 1 / len(own))):
        found = GreedyBleu(pairs, translator.tokenizer, len(pairs), 40)(translator.model)
        assert found["exact"] == pytest.approx(share)


def test_measuring_bleu_leaves_a_model_as_it_was_and_may_have_nothing_to_say(
    translator: Translator,
):
    model = Transformer(translator.config).train()
    vocabulary = translator.tokenizer
    measure = GreedyBleu(PAIRS, vocabulary, 5, 40)
    before = torch.get_rng_state()
    assert measure(model)["bleu_sentences"] == 5
    assert model.training
    assert torch.equal(torch.get_rng_state(), before)
    nn.init.constant_(model.embedding.weight, torch.nan)
    assert measure(model) == {}
    long = [SentencePair("one " * 50, "eins"), *PAIRS[:30]]
    assert GreedyBleu(long, vocabulary, 200, 20).pairs == PAIRS[:30]
    assert GreedyBleu(PAIRS, vocabulary, 200, 2).pairs == []
    assert GreedyBleu(PAIRS, vocabulary, 0, 40)(Transformer(translator.config)) == {}
    with pytest.raises(ValueError, match="--bleu-sentences is -1"):
        GreedyBleu(PAIRS, vocabulary, -1, 40)


def test_progress_shows_loss_speed_time_left_and_quality(capsys: pytest.CaptureFixture[str]):
    progress = TerminalLine(100, 1e9, "a measured product")
    progress.show(TrainingStep(50, 2.0, 1e-3, 0.5, 100, 0.5, 2.5e8, valid_loss=1.25))
    line = (
        "50/100 · loss 2.000 · 200 tokens/s · 50 % of a measured product · 0:00:25 left · valid "
        "1.250"
    )
    assert line in capsys.readouterr().err
    assert duration(3 * 3600 + 62) == "3:01:02"
    scored = {"valid_loss": 2.0, "bleu": 23.46, "bleu_sentences": 5, "exact": 0.2}
    progress.show(TrainingStep(10, 1.0, 0.1, 1.0, 100, 1.0, **scored))
    assert progress.line().endswith("valid 2.000 · BLEU 23.5 · 20 % exact")


# --- recurrent models ----------------------------------------------------------------------------

COLOURS = ("red", "big", "old", "new", "hot", "wet", "shy", "mad")
TURNED = [
    (f"{a} {b} {c}", f"{c} {b} {a}")
    for a in COLOURS
    for b in COLOURS
    for c in COLOURS
    if len({a, b, c}) == 3
]


def test_a_recurrent_twin_learns_to_reverse_three_words(tmp_path: Path):
    score = "local"
    pairs = tmp_path / "pairs.tsv"
    run = tmp_path / "run"
    pairs.write_text(
        "".join(f"{source}\t{target}\n" for source, target in TURNED), encoding="utf-8"
    )
    command = [
        "train",
        "--preset",
        f"recurrent-{score}",
        "--train",
        str(pairs),
        "--valid",
        str(pairs),
    ]
    command += [
        "--vocab-size",
        "280",
        "--d-model",
        "32",
        "--dropout",
        "0",
        "--batch-positions",
        "512",
    ]
    command += [
        "--label-smoothing",
        "0",
        "--device",
        "cpu",
        "--bleu-sentences",
        "0",
        "--steps",
        "250",
    ]
    command += [
        "--warmup",
        "20",
        "--learning-rate",
        "1e-2",
        "--evaluate-every",
        "250",
        "--output",
        str(run),
    ]
    assert main(command) == 0
    opened = load_translator(run)
    assert (type(opened.model), opened.config.score) == (Recurrent, score)
    right = [
        opened.translate(source, capture=False).text == target for source, target in TURNED[::20]
    ]
    assert sum(right) / len(right) > 0.8


# --- CUDA ----------------------------------------------------------------------------------------


@CUDA
@pytest.mark.parametrize("accumulate", [1, 2])
def test_recorded_steps_are_those_that_are_launched(data: EncodedPairs, accumulate, monkeypatch):
    options = replace(OPTIONS, steps=12, accumulate=accumulate)
    parts = []
    for most in (0, 100):
        monkeypatch.setattr("transformer.training.trainer.MOST_GRAPHS", most)
        trainer = Trainer(make_model(dropout=0.0).cuda(), data, options)
        parts.append([step.loss for step in train(trainer, data)])
        assert any(trainer._graphs.values()) == bool(most)
    assert parts[0] == pytest.approx(parts[1], rel=1e-3)
