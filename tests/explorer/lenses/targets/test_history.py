"""A run's history: the log thinned and smoothed, its hash, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from corpus import number_pairs, write_pairs
from programs import main

from explorer.lenses.targets.history import POINTS, read_history, thinned, write_history
from explorer.lenses.targets.stated import stated_options
from transformer.storage.description import HISTORY_FILE
from transformer.storage.directory import load_checkpoint
from transformer.storage.files import CheckpointError, read_json, write_json
from transformer.text.pairs import DataError
from transformer.training.log import read_log
from transformer.training.options import learning_rate
from transformer.training.trainer import TrainingStep

SIZES = ["--preset", "tiny", "--vocab-size", "300", "--d-model", "8", "--n-heads", "2", "--d-ff", "8"]
STEPS = ["--steps", "12", "--warmup", "3", "--checkpoint-every", "4", "--evaluate-every", "5"]


def line(step: int, **more: Any) -> dict[str, Any]:
    values = {"loss": 10 / step, "learning_rate": 1e-3, "gradient_norm": 1.0, "tokens": 7, "seconds": 0.5}
    return {"step": step} | values | more


def steps(*lines: dict[str, Any]) -> list[TrainingStep]:
    return [TrainingStep(**each) for each in lines]


def write_log(path: Path, lines: list[dict[str, Any]], end: str = "") -> Path:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines) + end, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    pairs = write_pairs(tmp_path_factory.mktemp("pairs") / "pairs.tsv", number_pairs(40))
    return ["train", "--train", str(pairs), "--valid", str(pairs), "--device", "cpu", *SIZES, *STEPS]


@pytest.fixture(scope="module")
def model(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that a short run made, with its history."""
    with pytest.MonkeyPatch.context() as patch:
        output = tmp_path_factory.mktemp("runs") / "run"
        patch.setattr("sys.argv", ["transformer", *command])
        assert main([*command, "--output", str(output), "--bleu-sentences", "10"]) == 0
    write_history(output, output / "log.jsonl", "python", "2026-11-27")
    return output


def test_the_history_holds_what_the_run_logged(model: Path):
    found, log = read_history(model), read_log(model / "log.jsonl")
    assert found is not None
    assert (found.steps, found.bleu_sentences) == (12, 10)
    for name in ("loss", "learning_rate", "gradient_norm"):
        assert found.training[name] == pytest.approx([getattr(each, name) for each in log], rel=1e-5)
    assert [step for step, _ in found.measured("bleu")] == [5, 10, 12]
    logged = [(each.step, each.valid_loss) for each in log if each.valid_loss is not None]
    assert found.measured("valid_loss") == [(step, pytest.approx(value, rel=1e-5)) for step, value in logged]


def test_the_logged_learning_rates_are_those_of_the_schedule_that_the_card_states(model: Path):
    loaded, found = load_checkpoint(model), read_history(model)
    options = stated_options(loaded.card)
    assert options is not None
    assert found is not None
    width = loaded.config.d_model
    stated = [learning_rate(options, int(step), width) for step in found.training["step"]]
    assert found.training["learning_rate"] == pytest.approx(stated, rel=1e-5)


def test_smoothed_values_are_means_weighted_by_tokens_over_the_steps_around():
    log = steps(*(line(step, tokens=step) for step in range(1, 301)))
    found = thinned(log)
    assert found.window == 3
    place = found.training["step"].index(151)
    around = [each for each in log if abs(each.step - 151) <= 1]
    mean = sum(each.loss * each.tokens for each in around) / sum(each.tokens for each in around)
    assert found.training["smoothed_loss"][place] == pytest.approx(mean, rel=1e-5)


def test_a_long_log_is_thinned_to_both_ends_and_100_kilobytes(tmp_path: Path):
    long = [
        line(i, loss=i / 7, gradient_norm=i / 9e7, valid_loss=i / 3e5, valid_loss_average=1 / i, bleu=12.34)
        for i in range(100_000, 103_000)
    ]
    found = thinned(steps(*(each | {"bleu_sentences": 200} for each in long)))
    assert len(found.training["step"]) == len(found.evaluations["step"]) == POINTS
    assert (found.training["step"][0], found.training["step"][-1]) == (100_000, 102_999)
    write_json(tmp_path / "a.json", {"training": found.training, "evaluations": found.evaluations})
    assert (tmp_path / "a.json").stat().st_size < 99_000


def test_a_last_line_that_is_half_written_is_left_out(tmp_path: Path):
    log = write_log(tmp_path / "log.jsonl", [line(1), line(2)], '{"step": 3, "lo')
    assert [each.step for each in read_log(log)] == [1, 2]


def test_steps_after_that_of_the_weights_belong_to_another_model(model: Path, tmp_path: Path):
    log = write_log(tmp_path / "log.jsonl", [line(step) for step in range(1, 20)])
    assert write_history(model, log, "python", "2026-11-27")
    found = read_history(model)
    assert found is not None
    assert found.steps == 12
    assert write_history(model, model / "log.jsonl", "python", "2026-11-27")


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("", "logs no step"),
        ("nonsense\nnonsense\n", "not a line of a training log"),
        ('{"step": 2}\n{"step": 3}\n', "not a line of a training log"),
        (json.dumps(line(2)) + "\n" + json.dumps(line(1)) + "\n", "not a line of a training log"),
        *(
            (
                json.dumps(line(1) | {name: 0}).replace(f'"{name}": 0', f'"{name}": {value}') + "\n{}\n",
                "not a line",
            )
            for name, value in (
                ("loss", "NaN"),
                ("loss", "1" + "0" * 400),
                ("tokens", '"7"'),
                ("valid_loss", "[1]"),
                ("bleu", "Infinity"),
                ("step", "true"),
                ("note", '"\\ud800"'),
                ("note", "[" * 40 + "]" * 40),
                ("note", "[" * 50_000),
            )
        ),
    ],
)
def test_what_is_no_log_is_refused_with_its_line(lines: str, reason: str, tmp_path: Path):
    (tmp_path / "log.jsonl").write_text(lines, encoding="utf-8")
    with pytest.raises(DataError, match=reason):
        read_log(tmp_path / "log.jsonl")


def test_the_log_of_a_shorter_run_is_refused(model: Path, tmp_path: Path):
    log = write_log(tmp_path / "log.jsonl", [line(1), line(2)])
    with pytest.raises(DataError, match="ends at step 2"):
        write_history(model, log, "python", "2026-11-27")


def test_the_file_of_another_model_is_not_its_own(model: Path, tmp_path: Path):
    for name in ("config.json", "tokenizer.model", "model.safetensors"):
        (tmp_path / name).write_bytes((model / name).read_bytes())
    assert read_history(tmp_path) is None
    write_json(tmp_path / HISTORY_FILE, read_json(model / HISTORY_FILE) | {"digests": {}})
    assert read_history(tmp_path) is None


BROKEN: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no steps": lambda values: values.pop("steps"),
    "a text for a number": lambda values: values["training"]["loss"].__setitem__(0, "1"),
    "a short column": lambda values: values["evaluations"]["bleu"].pop(),
    "a list for a table": lambda values: values.update(training=[]),
    "no point": lambda values: [column.clear() for column in values["training"].values()],
    "more points than are ever written": lambda values: [
        column.__imul__(POINTS) for column in values["evaluations"].values()
    ],
    "steps out of order": lambda values: values["training"]["step"].reverse(),
    "a step before the first": lambda values: values["evaluations"]["step"].__setitem__(0, 0),
    "means over nothing": lambda values: values.update(window=0),
    "BLEU of no sentences": lambda values: values.update(bleu_sentences=None),
}
WRITTEN = {
    "{": "not valid JSON",
    '{"steps": NaN}': "not valid JSON",
    '{"steps": 1' + "0" * 400 + "}": "not valid JSON",
    '{"command": "\\ud800"}': "not valid JSON",
    "[" * 100_000: "not valid JSON",
    "[]": "not a JSON object",
    " " * (2**24 + 1): "larger than 16 MiB",
    "version https://git-lfs.github.com/spec/v1\n": "a pointer of Git LFS; run git lfs pull",
}


@pytest.mark.parametrize("content", WRITTEN, ids=WRITTEN.values())
def test_what_is_no_history_is_refused_in_one_sentence(content: str, tmp_path: Path):
    (tmp_path / HISTORY_FILE).write_text(content)
    with pytest.raises(CheckpointError, match=f"{WRITTEN[content]}[^.]*[.]$"):
        read_history(tmp_path)


@pytest.mark.parametrize("name", BROKEN)
def test_a_damaged_file_is_named(name: str, model: Path, tmp_path: Path):
    for file in model.glob("*.*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    values = read_json(model / HISTORY_FILE)
    BROKEN[name](values)
    write_json(tmp_path / HISTORY_FILE, values)
    with pytest.raises(CheckpointError, match=r"history\.json is damaged"):
        read_history(tmp_path)


def test_measuring_bleu_changes_nothing_of_the_run(command: list[str], model: Path, tmp_path: Path):
    assert main([*command, "--output", str(tmp_path / "run"), "--bleu-sentences", "0"]) == 0
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()
    without = read_log(tmp_path / "run" / "log.jsonl")
    assert {each.bleu for each in without} == {None}
    with_it = [each.loss for each in read_log(model / "log.jsonl")]
    assert [each.loss for each in without] == with_it


def test_a_negative_number_of_sentences_is_refused(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    capsys.readouterr()
    assert main([*command, "--output", str(tmp_path / "run"), "--bleu-sentences", "-1"]) == 2
    assert "--bleu-sentences is -1" in capsys.readouterr().err
