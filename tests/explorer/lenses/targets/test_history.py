"""Targets: a pair as training shows it, losses and filters beside torch; a model's log, options and
task."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from corpus import number_pairs, write_pairs
from programs import main
from torch.nn import functional as F

from explorer.lenses.targets.filters import filtered_steps
from explorer.lenses.targets.lesson import lesson, smoothed
from transformer import Sampling, load_translator
from transformer import interventions as do
from transformer.storage.description import HISTORY_FILE
from transformer.storage.directory import load_checkpoint
from transformer.storage.files import CheckpointError, read_json, write_json
from transformer.text.pairs import DataError
from transformer.training.history import POINTS, read_history, thinned, write_history
from transformer.training.log import read_log
from transformer.training.loss import projected_loss
from transformer.training.options import TrainingOptions, learning_rate
from transformer.training.presets import PRESETS
from transformer.training.stated import stated
from transformer.training.trainer import TrainingStep

SIZES = [
    "--preset",
    "tiny",
    "--vocab-size",
    "300",
    "--d-model",
    "8",
    "--n-heads",
    "2",
    "--d-ff",
    "8",
]
STEPS = ["--steps", "12", "--warmup", "3", "--checkpoint-every", "4", "--evaluate-every", "5"]
WHEN = "python", "2026-11-27"


def line(step: int, **more: Any) -> dict[str, Any]:
    values = {"step": step, "loss": 10 / step, "learning_rate": 1e-3, "gradient_norm": step % 5}
    return values | {"tokens": 7, "seconds": 0.5} | more


def write_log(path: Path, lines: list[dict[str, Any]], end: str = "") -> Path:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines) + end, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    pairs = write_pairs(tmp_path_factory.mktemp("pairs") / "pairs.tsv", number_pairs(40))
    return [
        "train",
        "--train",
        str(pairs),
        "--valid",
        str(pairs),
        "--device",
        "cpu",
        *SIZES,
        *STEPS,
    ]


@pytest.fixture(scope="module")
def model(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that a short run made, with its history."""
    with pytest.MonkeyPatch.context() as patch:
        output = tmp_path_factory.mktemp("runs") / "run"
        patch.setattr("sys.argv", ["transformer", *command])
        assert main([*command, "--output", str(output), "--bleu-sentences", "10"]) == 0
    write_history(output, output / "log.jsonl", *WHEN)
    return output


def test_the_history_holds_what_the_run_logged_at_the_rates_that_its_card_states(model: Path):
    found = read_history(model)
    log = read_log(model / "log.jsonl")
    loaded = load_checkpoint(model)
    assert found is not None
    assert (found.steps, found.window, found.bleu_sentences) == (12, 1, 10)
    assert [*found.training["step"]] == [*range(1, 13)]
    for name in ("loss", "learning_rate", "gradient_norm"):
        assert found.training[name] == pytest.approx(
            [getattr(each, name) for each in log], rel=1e-5
        )
    for name in ("valid_loss", "valid_loss_average", "bleu"):
        logged = [
            (each.step, getattr(each, name)) for each in log if getattr(each, name) is not None
        ]
        assert found.measured(name) == [
            (step, pytest.approx(value, rel=1e-5)) for step, value in logged
        ]
    assert [step for step, _ in found.measured("bleu")] == [5, 10, 12]
    options = stated(loaded.card).options
    assert options is not None
    rates = [
        learning_rate(options, int(step), loaded.config.d_model) for step in found.training["step"]
    ]
    assert found.training["learning_rate"] == pytest.approx(rates, rel=1e-5)


def test_smoothed_values_are_means_over_the_steps_around_the_loss_weighted_by_tokens():
    log = [TrainingStep(**line(step, tokens=step)) for step in range(1, 301)]
    found = thinned(log)
    assert found.window == 3
    for place, step in enumerate(map(int, found.training["step"])):
        around = log[max(0, step - 2) : step + 1]
        loss = sum(each.loss * each.tokens for each in around) / sum(each.tokens for each in around)
        norm = sum(each.gradient_norm for each in around) / len(around)
        assert found.training["smoothed_loss"][place] == pytest.approx(loss, rel=1e-4)
        assert found.training["smoothed_gradient_norm"][place] == pytest.approx(norm, rel=1e-4)


def test_a_long_log_is_thinned_to_both_ends_and_100_kilobytes(tmp_path: Path):
    more = {"valid_loss_average": 1 / 3, "bleu": 12.34, "bleu_sentences": 200}
    numbers = [
        line(i, loss=i / 7, gradient_norm=i / 9e7, valid_loss=i / 3e5, **more)
        for i in range(100_000, 103_000)
    ]
    found = thinned([TrainingStep(**number) for number in numbers])
    steps = [100_000 + round(i * 2999 / 399) for i in range(POINTS)]
    assert [*found.training["step"]] == [*found.evaluations["step"]] == steps
    write_json(tmp_path / "a.json", {"training": found.training, "evaluations": found.evaluations})
    assert (tmp_path / "a.json").stat().st_size < 99_000


def test_a_half_written_line_and_steps_after_those_of_the_weights_are_left_out(
    model: Path, tmp_path: Path
):
    log = write_log(
        tmp_path / "log.jsonl", [line(step) for step in range(1, 20)], '{"step": 20, "lo'
    )
    assert [each.step for each in read_log(log)] == [*range(1, 20)]
    before = (model / HISTORY_FILE).read_bytes()
    assert write_history(model, log, *WHEN).steps == 12
    assert read_json(model / HISTORY_FILE)["training"]["step"] == [*range(1, 13)]
    (model / HISTORY_FILE).write_bytes(before)
    with pytest.raises(DataError, match="ends at step 2"):
        write_history(model, write_log(log, [line(1), line(2)]), *WHEN)


def with_value(name: str, value: str) -> str:
    return json.dumps(line(1) | {name: 0}).replace(f'"{name}": 0', f'"{name}": {value}') + "\n{}\n"


NO_LOGS = {
    "": "logs no step",
    "nonsense\nnonsense\n": "not a line of a training log",
    f"{json.dumps(line(2))}\n{json.dumps(line(1))}\n": "not a line of a training log",
    with_value("loss", "1" + "0" * 400): "not a line",
    with_value("bleu", "Infinity"): "not a line",
    with_value("step", "true"): "not a line",
    with_value("note", "[" * 50_000): "not a line",
}


@pytest.mark.parametrize("text", NO_LOGS, ids=range(len(NO_LOGS)))
def test_what_is_no_log_is_refused_with_its_line(text: str, tmp_path: Path):
    (tmp_path / "log.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=NO_LOGS[text]):
        read_log(tmp_path / "log.jsonl")


# --- damaged files -------------------------------------------------------------------------------

BROKEN: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no steps": lambda values: values.pop("steps"),
    "a text for a number": lambda values: values["training"]["loss"].__setitem__(0, "1"),
    "a short column": lambda values: values["evaluations"]["bleu"].pop(),
    "a list for a table": lambda values: values.update(training=[]),
    "no point": lambda values: [column.clear() for column in values["training"].values()],
    "too many points": lambda values: [
        each.__imul__(POINTS) for each in values["evaluations"].values()
    ],
    "steps out of order": lambda values: values["training"]["step"].reverse(),
    "a step twice": lambda values: values["training"]["step"].__setitem__(1, 1),
    "a step before the first": lambda values: values["evaluations"]["step"].__setitem__(0, 0),
    "means over nothing": lambda values: values.update(window=0),
    "no steps at all": lambda values: values.update(steps=0),
    "BLEU of no sentences": lambda values: values.update(bleu_sentences=None),
}


def test_a_damaged_file_is_named_and_that_of_another_model_or_none_is_not_read(
    model: Path, tmp_path: Path
):
    for file in ("config.json", "tokenizer.model", "model.safetensors"):
        (tmp_path / file).write_bytes((model / file).read_bytes())
    assert read_history(tmp_path) is None
    for name, damage in BROKEN.items():
        values = read_json(model / HISTORY_FILE)
        damage(values)
        write_json(tmp_path / HISTORY_FILE, values)
        with pytest.raises(CheckpointError, match=r"history\.json is damaged"):
            pytest.fail(f"{name}: {read_history(tmp_path)}")
    write_json(tmp_path / HISTORY_FILE, read_json(model / HISTORY_FILE) | {"digests": {}})
    assert read_history(tmp_path) is None


# --- the card ------------------------------------------------------------------------------------

CARD = "# A model\n\n```sh\npython -m transformer train --train a.tsv {}\n```\n"
SHAW = PRESETS["positions-shaw"].options


@pytest.mark.parametrize(
    ("card", "options"),
    [
        (CARD.format("--steps 30 --warmup 4") + CARD.format("--steps 20"), {"steps": 20, "warmup": 4}),
        # the last value counts, and a flag without a value does not take the next flag
        (CARD.format("--resume --steps 20 --compile --warmup 4"), {"steps": 20, "warmup": 4}),
        (CARD.format("--preset positions-shaw --learning-rate 2e-3"), {**SHAW, "learning_rate": 2e-3}),
        ("", None),
        (CARD.format("--steps many"), None),
        (CARD.format("--schedule sideways"), None),
        (CARD.format("--warmup 0"), None),
        ("python -m transformer train --steps 5", None),
    ],
    ids=str,
)  # fmt: skip
def test_a_card_states_the_options_of_its_command_if_it_can_be_read(card, options):
    assert stated(card).options == (options and TrainingOptions(**options))


@pytest.mark.parametrize(
    ("flags", "task"),
    [
        ("--toy reverse --toy-length 6", ("reverse", 6)),
        ("--toy sort", ("sort", 5)),
        ("--toy knitting", None),
        ("--toy sort --toy-length 900", None),
    ],
)
def test_a_card_names_the_toy_task_that_was_learned(flags: str, task: tuple[str, int] | None):
    assert stated(CARD.format(flags)).toy == task


# --- a pair as training shows it -----------------------------------------------------------------

TEXT = "one two three four"


@pytest.fixture(scope="module")
def target(translator):
    return (*translator.cut("eins drei zwei", "target").ids, translator.config.eos_id)


@pytest.fixture(scope="module")
def view(translator, target):
    return lesson(translator, TEXT, target)


@pytest.fixture(scope="module")
def greedy(translator):
    return translator.translate(TEXT, beam_size=1).target_ids


def test_one_pass_gives_the_losses_and_guesses_of_every_prefix_on_its_own(translator, target, view):
    config = translator.config
    source = torch.tensor([[*translator.ids(TEXT), config.eos_id]])
    rows = [
        translator.model(source, torch.tensor([[config.bos_id, *target[:step]]]))[0, -1]
        .double()
        .softmax(-1)
        for step in range(len(target))
    ]
    losses = [-float(row[token].log()) for row, token in zip(rows, target, strict=True)]
    assert [each.loss for each in view.positions] == pytest.approx(losses, abs=1e-5)
    assert view.loss == pytest.approx(np.mean(losses), abs=1e-5)
    assert [each.share for each in view.positions] == pytest.approx(
        [float(row.max()) for row in rows], abs=1e-5
    )
    words = [
        (position.read, position.token, position.token_id, position.guess)
        for position in view.positions
    ]
    pieces = [*translator.pieces(target)]
    guesses = translator.pieces([int(row.argmax()) for row in rows])
    assert words == [*zip(["<s>", *pieces[:-1]], pieces, target, guesses, strict=True)]
    weight, bias = translator.model.projection
    counted = projected_loss(view.features, weight, torch.tensor(target), 0.0, bias)
    assert float(counted) == pytest.approx(sum(losses), abs=1e-4)


def test_the_greedy_output_parts_from_a_target_where_they_first_differ_or_one_ends(
    translator, greedy, view
):
    assert (view.free_ids, view.free) == (greedy, translator.pieces(greedy))
    step = view.parting
    assert step is not None
    assert [position.guess for position in view.positions[: step + 1]] == list(
        view.free[: step + 1]
    )
    assert view.positions[step].token_id != view.free_ids[step]
    other = (greedy[0], greedy[1] + 1, *greedy[2:])
    parts = [
        lesson(translator, TEXT, ids).parting for ids in (greedy, greedy[:2], (*greedy, 5), other)
    ]
    assert parts == [None, 2, len(greedy), 1]


# --- smoothed targets ----------------------------------------------------------------------------


def reference(translator, view, position, epsilon):
    """The loss of PyTorch and its gradient with respect to the logits, in float64."""
    logits = (
        translator.model.logits(view.features[position])
        .double()
        .cpu()
        .detach()
        .requires_grad_(True)
    )
    right = torch.tensor(view.positions[position].token_id)
    loss = F.cross_entropy(logits[None], right[None], label_smoothing=epsilon)
    loss.backward()
    return float(loss.detach()), logits.grad, logits.detach().log_softmax(-1)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.37, 0.9])
def test_loss_parts_and_gradient_are_those_of_an_independent_cross_entropy(
    translator, view, epsilon
):
    for position, each in enumerate(view.positions):
        loss, gradient, log_probs = reference(translator, view, position, epsilon)
        found = smoothed(translator, view, position, epsilon)
        assert (found.epsilon, found.pieces) == (epsilon, translator.config.vocab_size)
        expected = (loss, each.loss, -float(log_probs.mean()))
        assert (found.loss, found.bare_loss, found.spread) == pytest.approx(expected, abs=1e-5)
        best = log_probs.topk(8).indices.tolist()
        ids = best if each.token_id in best else [*best[:-1], each.token_id]
        assert found.right == ids.index(each.token_id)
        assert [one.token for one in found.entries] == list(translator.pieces(ids))
        shares = log_probs.exp()[ids]
        bare = [float(i == each.token_id) for i in ids]
        assert [one.share for one in found.entries] == pytest.approx(shares.tolist(), abs=1e-5)
        assert [one.bare for one in found.entries] == bare
        assert [one.gradient for one in found.entries] == pytest.approx(
            gradient[ids].tolist(), abs=1e-5
        )
        assert [one.bare_gradient for one in found.entries] == pytest.approx(
            [float(share) - one for share, one in zip(shares, bare, strict=True)], abs=1e-5
        )
        rest = 1 - float(shares.sum()), epsilon * (1 - len(ids) / found.pieces), 0.0
        assert (found.rest.share, found.rest.target, found.rest.bare) == pytest.approx(
            rest, abs=1e-5
        )
        smooth = torch.full((found.pieces,), epsilon / found.pieces, dtype=torch.float64)
        smooth[0] += 1 - epsilon
        assert found.floor == pytest.approx(float(torch.special.entr(smooth).sum()), abs=1e-9)
        assert found.floor <= found.loss


def test_the_bias_of_a_marian_model_counts_too(original):
    translator = load_translator(original)
    run = translator.force("one two", "eins zwei")
    shown = lesson(translator, "one two", run.target_ids)
    assert [each.loss for each in shown.positions] == pytest.approx(
        [-log_prob for log_prob in run.log_probs], abs=1e-5
    )
    for position in range(len(shown.positions)):
        loss = reference(translator, shown, position, 0.1)[0]
        assert smoothed(translator, shown, position, 0.1).loss == pytest.approx(loss, abs=1e-4)


@pytest.mark.parametrize("epsilon", [-0.1, 1.0])
def test_a_smoothing_out_of_range_is_refused(translator, view, epsilon):
    with pytest.raises(ValueError, match="from 0 to below 1"):
        smoothed(translator, view, 0, epsilon)


# --- filters of a sampler ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=0.7, top_k=3, seed=2),
        Sampling(temperature=0.9, top_p=0.6, seed=1),
        Sampling(),
        Sampling(temperature=3.0, seed=5),
    ],
    ids=str,
)
def test_before_is_the_model_s_own_probability_and_after_the_sampler_s(translator, sampling):
    run = translator.translate(TEXT, beam_size=1, sample=sampling)
    log_probs = run.distributions()
    after = sampling.filtered(log_probs)
    for step, found in enumerate(filtered_steps(translator, run, sampling)):
        best = log_probs[step].topk(12).indices.tolist()
        written = run.target_ids[step]
        ids = best if written in best else [*best[:-1], written]
        assert [(token.token_id, token.token) for token in found.tokens] == [
            *zip(ids, translator.pieces(ids), strict=True)
        ]
        before = log_probs[step].exp()
        assert [each.before for each in found.tokens] == pytest.approx(
            before[ids].tolist(), abs=1e-6
        )
        assert [each.after for each in found.tokens] == pytest.approx(
            after[step, ids].tolist(), abs=1e-6
        )
        assert found.tokens[ids.index(written)].after > 0
        left = after[step] > 0
        assert found.left == int(left.sum())
        assert found.mass == pytest.approx(float(before[left].sum()), abs=1e-5)


def test_what_a_change_or_a_rule_of_the_model_forbids_is_never_drawn(translator, original):
    sampling = Sampling()
    run = translator.translate(
        TEXT, beam_size=1, sample=sampling, interventions=[do.choose(0, "▁vier")]
    )
    first = filtered_steps(translator, run, sampling)[0]
    assert [(token.token, token.after) for token in first.tokens if token.after] == [("▁vier", 1.0)]
    assert (first.left, first.mass) == (
        1,
        pytest.approx(float(run.distributions()[0].exp()[run.target_ids[0]])),
    )
    marian = load_translator(original)
    run = marian.translate("one two three", beam_size=1, sample=sampling)
    barred = {ids[0] for ids in marian.rules.forbidden if len(ids) == 1}
    left = [each.left for each in filtered_steps(marian, run, sampling)]
    assert max(left) <= marian.config.vocab_size - len(barred)
    for step in filtered_steps(marian, run, sampling):
        assert all(not each.after for each in step.tokens if each.token_id in barred)
