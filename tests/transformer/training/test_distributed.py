"""Several processes train and measure as one does: the same numbers, and no batch lost or repeated."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import one_after_another
import pytest
import torch
import worker
from corpus import number_pairs, write_pairs
from programs import main
from safetensors.torch import load_file

from transformer.training.run import STATE_FILE

ROOT = Path(__file__).parents[3]
SIZES = ["--preset", "tiny", "--vocab-size", "300", "--d-model", "16", "--n-heads", "2", "--d-ff", "16"]
STEPS = ["--steps", "6", "--checkpoint-every", "2", "--evaluate-every", "3", "--warmup", "2"]
ALIKE = [*SIZES, *STEPS, "--dropout", "0", "--batch-positions", "60", "--device", "cpu"]


@dataclass(frozen=True)
class Together:
    """Three commands of two processes."""

    output: Path  # the run that the first one trained
    scores: list[str]  # the command that scores a file
    done: subprocess.CompletedProcess[str]  # the job that ran these two, and then a command with an error


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("pairs")
    train = write_pairs(folder / "train.tsv", number_pairs(60))
    valid = write_pairs(folder / "valid.tsv", number_pairs(20, seed=1))
    return ["train", "--train", str(train), "--valid", str(valid)]


@pytest.fixture(scope="module")
def alone(pairs: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process that uses two batches a step."""
    output = tmp_path_factory.mktemp("alone") / "run"
    assert main([*pairs, "--output", str(output), *ALIKE, "--accumulate", "2"]) == 0
    return output


def torchrun(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'support'}"}
    return subprocess.run(
        [*command, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )


def log_of(output: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (output / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def assert_alike(one: Path, other: Path) -> None:
    """Compares losses, counts and weights of two runs."""
    for left, right in zip(log_of(one), log_of(other), strict=True):
        assert left.keys() == right.keys()
        for name in left.keys() - {"seconds"}:
            assert left[name] == pytest.approx(right[name], abs=1e-5), (name, left["step"])
    ours, theirs = load_file(one / STATE_FILE), load_file(other / STATE_FILE)
    for name in (name for name in ours if name.startswith(("model/", "average/", "used"))):
        torch.testing.assert_close(ours[name], theirs[name], rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def together(pairs: list[str], alone: Path, tmp_path_factory: pytest.TempPathFactory) -> Together:
    """What two processes train and measure, one command after the other; the last one has an error."""
    folder = tmp_path_factory.mktemp("together")
    output, broken = folder / "run", folder / "broken.tsv"
    broken.write_text("one\teins\t0-0\n" + f"{'one ' * 2000}\teins\t0-0\n", encoding="utf-8")
    train = [*pairs, "--output", str(output), *ALIKE]
    scores = ["evaluate", "--model", str(alone), "--data", pairs[-1], "--json"]
    align = ["align", "--model", str(alone), "--data", str(broken)]
    done = torchrun(one_after_another.__file__, json.dumps([train, scores, align]))
    return Together(output, scores, done)


def test_two_processes_equal_one_that_accumulates_two_batches(together: Together, alone: Path) -> None:
    assert_alike(together.output, alone)


def test_a_job_whose_process_was_killed_is_repeated_from_its_last_checkpoint(
    pairs: list[str], alone: Path, tmp_path: Path
) -> None:
    output, mark = tmp_path / "run", tmp_path / "killed"
    run = [*pairs, "--output", str(output), *ALIKE, "--resume-if-present"]
    done = torchrun("--max-restarts", "1", worker.__file__, "1", "4", str(mark), *run)
    assert done.returncode == 0, done.stderr
    assert mark.exists()
    assert "Another process of the job has ended" in done.stderr
    assert_alike(output, alone)


def test_two_processes_score_a_file_as_one_does(
    together: Together, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(together.scores) == 0
    one = json.loads(capfd.readouterr().out)
    (two,) = (json.loads(line) for line in together.done.stdout.splitlines() if line.startswith("{"))
    assert one.keys() == two.keys()
    assert {name for name in one if one[name] != two[name]} <= {"tokens_per_second"}


def test_an_error_of_one_process_ends_the_job_with_its_sentence(together: Together) -> None:
    assert together.done.returncode != 0
    assert "shorten it to at most" in together.done.stderr
    assert 'Traceback (most recent call last):\n  File "/root' not in together.done.stderr
