"""`train --toy`: what the tasks teach can be seen in the maps; the end of input ends a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from programs import main
from waiting import until

from explorer.lenses.targets.stated import stated_options
from transformer import Translator, load_translator
from transformer.config import AttentionKind
from transformer.storage.description import WEIGHTS_FILE
from transformer.training.run import LOG_FILE, STATE_FILE
from transformer.training.toys import LENGTH, toy_data
from transformer.training.trainer import Trainer

SMALL = ["--d-model", "32", "--d-ff", "64", "--n-heads", "2", "--batch-positions", "512", "--device", "cpu"]
SMALL += ["--n-encoder-layers", "1", "--n-decoder-layers", "1", "--learning-rate", "1e-2", "--warmup", "50"]
STEPS = {"copy": "300", "reverse": "800"}


def trained(name: str, folder: Path) -> Path:
    steps = STEPS[name]
    often = ["--steps", steps, "--evaluate-every", steps, "--checkpoint-every", steps]
    assert main(["train", "--toy", name, "--output", str(folder / name), *SMALL, *often]) == 0
    return folder / name


def looked_at(translator: Translator, source: str, target: str) -> np.ndarray:
    """The letter (from 0) that the mean of the heads of the only layer looks at most, for each letter."""
    run = translator.force(source, target)
    assert run.attention is not None
    count = len(source.split())
    weights = np.asarray(run.attention.weights(AttentionKind.CROSS, layer=0)).mean(0)
    return weights[:count].argmax(-1)


@pytest.mark.parametrize(("name", "order"), [("copy", np.arange), ("reverse", lambda n: np.arange(n)[::-1])])
def test_a_toy_is_learnt_and_cross_attention_shows_its_diagonal(
    name: str, order: Callable[[int], np.ndarray], tmp_path: Path
) -> None:
    path = trained(name, tmp_path)
    last = json.loads((path / LOG_FILE).read_text().splitlines()[-1])
    assert last["exact"] >= 0.99
    translator = load_translator(path)
    longest = [pair for pair in toy_data(name).valid if len(pair.source.split()) == LENGTH]
    found = [looked_at(translator, pair.source, pair.target) for pair in longest]
    assert np.mean([rows == order(LENGTH) for rows in found]) >= 0.95


@pytest.mark.parametrize(
    ("options", "variables", "threads"),
    [([], {}, 1), (["--threads", "2"], {}, 2), ([], {"OMP_NUM_THREADS": "3"}, 3)],
)
def test_a_small_model_trains_on_one_thread_unless_told_otherwise(
    options: list[str],
    variables: dict[str, str],
    threads: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []
    step = Trainer.advance
    monkeypatch.setattr(
        Trainer, "advance", lambda self: (seen.append(torch.get_num_threads()), step(self))[1]
    )
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        run = ["--output", str(tmp_path / "run"), "--steps", "1", "--warmup", "1", "--device", "cpu"]
        assert main(["train", "--toy", "copy", "--bleu-sentences", "0", *run, *options]) == 0
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {threads}


def test_a_number_of_threads_below_one_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--toy", "copy", "--output", str(tmp_path / "run"), "--threads", "0"]) == 2
    assert "--threads is 0; it must be at least 1." in capsys.readouterr().err


def test_the_card_s_command_gives_the_options_of_the_toy_preset() -> None:
    options = stated_options("```sh\npython -m transformer train --toy copy --output x\n```")
    assert options is not None
    assert (options.label_smoothing, options.steps) == (0.0, 1000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give pairs to train on"),
        (["--toy", "copy", "--train", "x.tsv"], "--toy makes its own pairs"),
        (["--toy", "copy", "--toy-length", "99"], "choose 3 to 12"),
        (["--toy", "copy", "--toy-length", "0"], "choose 3 to 12"),
    ],
)
def test_a_command_without_usable_data_is_refused_in_one_sentence(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--output", str(tmp_path / "run"), *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.strip().splitlines()) == 1


def test_a_smaller_vocabulary_is_taken_only_if_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in toy_data("copy").valid))
    command = ["train", "--train", str(pairs), "--valid", str(pairs), "--preset", "tiny", *SMALL]
    command += ["--steps", "1", "--vocab-size", "2000"]
    assert main([*command, "--output", str(tmp_path / "a")]) == 2
    assert "cannot give a vocabulary of 2000 pieces" in capsys.readouterr().err
    assert main([*command, "--output", str(tmp_path / "b"), "--smaller-vocabulary"]) == 0
    assert load_translator(tmp_path / "b").tokenizer.vocab_size < 400


def test_the_end_of_input_stops_a_run_and_saves_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = [sys.executable, "-m", "transformer", "train", "--toy", "copy", "--output", str(run), *SMALL]
    child = subprocess.Popen(
        [*command, "--steps", "100000", "--obey-input"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    until(lambda: (run / LOG_FILE).is_file() and bool((run / LOG_FILE).read_text()))
    assert child.stdin is not None
    child.stdin.close()
    child.stdin = None
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "add --resume to continue" in said
    assert (run / STATE_FILE).is_file()
    assert (run / WEIGHTS_FILE).is_file()
