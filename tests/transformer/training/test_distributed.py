"""Several processes train and measure as one does: the same numbers, and no batch lost or
repeated."""

import json
import os
import subprocess
import sys
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
SIZES = [
    "--preset",
    "tiny",
    "--vocab-size",
    "300",
    "--d-model",
    "16",
    "--n-heads",
    "2",
    "--d-ff",
    "16",
]
STEPS = ["--steps", "6", "--checkpoint-every", "2", "--evaluate-every", "3", "--warmup", "2"]
ALIKE = [*SIZES, *STEPS, "--dropout", "0", "--batch-positions", "60", "--device", "cpu"]


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
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--standalone",
    ]
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'support'}",
    }
    return subprocess.run(
        [*command, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def log_of(output: Path) -> list[dict[str, float]]:
    return [
        json.loads(line) for line in (output / "log.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def assert_alike(one: Path, other: Path) -> None:
    """Compares losses, counts and weights of two runs."""
    for left, right in zip(log_of(one), log_of(other), strict=True):
        assert left.keys() == right.keys()
        for name in left.keys() - {"seconds"}:
            assert left[name] == pytest.approx(right[name], abs=1e-5), (name, left["step"])
    ours = load_file(one / STATE_FILE)
    theirs = load_file(other / STATE_FILE)
    for name in (name for name in ours if name.startswith(("model/", "average/", "used"))):
        torch.testing.assert_close(ours[name], theirs[name], rtol=1e-4, atol=1e-5)


def test_two_processes_train_score_and_end_as_one_does(
    pairs, alone: Path, tmp_path: Path, capfd
) -> None:
    """One that accumulates two batches; the last command has an error."""
    output = tmp_path / "run"
    broken = tmp_path / "broken.tsv"
    broken.write_text("one\teins\t0-0\n" + f"{'one ' * 2000}\teins\t0-0\n", encoding="utf-8")
    train = [*pairs, "--output", str(output), *ALIKE]
    scores = ["evaluate", "--model", str(alone), "--data", pairs[-1], "--json"]
    align = ["align", "--model", str(alone), "--data", str(broken)]
    done = torchrun(one_after_another.__file__, json.dumps([train, scores, align]))
    assert_alike(output, alone)
    capfd.readouterr()
    assert main(scores) == 0
    one = json.loads(capfd.readouterr().out)
    (two,) = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    assert {name for name in one | two if one.get(name) != two.get(name)} <= {"tokens_per_second"}
    assert done.returncode != 0
    assert "shorten it to at most" in done.stderr
    assert 'Traceback (most recent call last):\n  File "/root' not in done.stderr


@pytest.mark.nightly
def test_a_job_whose_process_was_killed_is_repeated_from_its_last_checkpoint(
    pairs: list[str], alone: Path, tmp_path: Path
) -> None:
    output = tmp_path / "run"
    mark = tmp_path / "killed"
    run = [*pairs, "--output", str(output), *ALIKE, "--resume-if-present"]
    done = torchrun("--max-restarts", "1", worker.__file__, "1", "4", str(mark), *run)
    assert done.returncode == 0, done.stderr
    assert mark.exists()
    assert "Another process of the job has ended" in done.stderr
    assert_alike(output, alone)
