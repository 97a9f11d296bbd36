"""Snapshots of a run: when they are made, what they hold, and what a resumed run adds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from corpus import number_pairs, write_pairs
from programs import main

from transformer.storage.directory import load_checkpoint
from transformer.storage.files import CheckpointError
from transformer.training.runs.snapshots import FOLDER, load_snapshot, moments, snapshot_steps

SIZES = ["--preset", "tiny", "--vocab-size", "300", "--d-model", "8", "--n-heads", "2", "--d-ff", "8"]
STEPS = ["--steps", "6", "--checkpoint-every", "2", "--evaluate-every", "6", "--warmup", "1"]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    pairs = write_pairs(tmp_path_factory.mktemp("pairs") / "pairs.tsv", number_pairs(40))
    return ["train", "--train", str(pairs), "--valid", str(pairs), "--device", "cpu", *SIZES, *STEPS]


@pytest.fixture(scope="module")
def run(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("run") / "run"
    assert main([*command, "--output", str(output), "--average-decay", "0", "--snapshots", "4"]) == 0
    return output


def test_moments_double_from_the_untrained_model_to_the_last_step() -> None:
    assert moments(12, 6000) == (0, 5, 11, 23, 46, 93, 187, 375, 750, 1500, 3000, 6000)
    assert moments(12, 6) == (0, 1, 3, 6)
    assert moments(2, 100) == (0, 100)


@pytest.mark.parametrize("count", [-1, 0, 1, 101])
def test_a_senseless_number_of_snapshots_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match="choose 2 to 100"):
        moments(count, 100)


def test_a_run_keeps_its_weights_from_the_untrained_model_to_the_last(run: Path) -> None:
    assert snapshot_steps(run) == (0, 1, 3, 6)
    first, last = (load_snapshot(run, step).model.state_dict() for step in (0, 6))
    final = load_checkpoint(run).model.state_dict()
    assert all(torch.equal(last[name], final[name]) for name in final)
    assert not all(torch.equal(first[name], final[name]) for name in final)


def test_a_run_without_the_option_keeps_none(command: list[str], tmp_path: Path) -> None:
    assert main([*command, "--output", str(tmp_path / "run")]) == 0
    assert snapshot_steps(tmp_path / "run") == ()


def test_a_resumed_run_makes_the_snapshots_that_were_missing(
    command: list[str], run: Path, tmp_path: Path
) -> None:
    more = ["--output", str(tmp_path / "run"), "--average-decay", "0", "--snapshots", "4"]
    assert main([*command, *more, "--steps", "2"]) == 0
    for path in (tmp_path / "run" / FOLDER).iterdir():
        path.unlink()
    assert main([*command, *more, "--resume"]) == 0
    assert snapshot_steps(tmp_path / "run") == (3, 6)
    here, there = (load_snapshot(each, 3).model.state_dict() for each in (tmp_path / "run", run))
    assert here.keys() == there.keys()


def test_the_model_itself_is_the_last_snapshot(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / FOLDER / "step-0000006.safetensors").unlink()
    assert snapshot_steps(tmp_path / "run") == (0, 1, 3, 6)
    here, there = (load_snapshot(each, 6).model.state_dict() for each in (tmp_path / "run", run))
    assert all(torch.equal(here[name], there[name]) for name in there)


def test_a_step_without_a_snapshot_is_refused_and_those_there_are_named(run: Path) -> None:
    with pytest.raises(CheckpointError, match="no snapshot of step 5; it has 0, 1, 3, 6"):
        load_snapshot(run, 5)


def test_a_damaged_snapshot_is_refused(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    for file in (*run.glob("*.*"), *(run / FOLDER).iterdir()):
        place = copy / file.relative_to(run)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.read_bytes())
    damaged = copy / FOLDER / "step-0000003.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:100])
    with pytest.raises(CheckpointError, match="damaged, cut off"):
        load_snapshot(copy, 3)
