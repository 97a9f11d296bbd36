"""The commands: a step by arithmetic, a run that goes on exactly, a task that is learnt, lines and
links."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from tests.acceptance import surface

PAIRS = {"a b c d": "d c b a", "b d": "d b", "c a d": "d a c", "d b a c": "c a b d"}
SMALL = "--d-model 32 --d-ff 64 --n-heads 2 --n-encoder-layers 1 --n-decoder-layers 1 --device cpu"
PLAIN = (
    " --vocab-size 300 --smaller-vocabulary --bleu-sentences 0 --dropout 0 --label-smoothing 0.1 "
    "--steps 1"
)
PLAIN += (
    " --schedule linear --warmup 1 --average-decay 0 --weight-decay 0 --join-share 0 --plain-share "
    "0"
)
PLAIN += " --typed-share 0 --swap-share 0 --learning-rate"


def command(words: str, *arguments: object, typed: str = "", code: int = 0) -> str:
    """What a command of the product prints."""
    line = [sys.executable, "-m", *words.split(), *map(str, arguments)]
    own = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        line, cwd=surface.ROOT, env=own, input=typed, capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def log(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / surface.LOG).read_text().splitlines()]


def test_the_first_step_is_adams_of_the_smoothed_cross_entropy(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    losses = []
    pairs.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS.items()))
    for name, rate in (("before", 1e-30), ("after", 0.02)):
        options = [rate, "--train", pairs, "--valid", pairs, "--output", tmp_path / name]
        command(f"{surface.TRAIN} {SMALL} {PLAIN}", *options)
    before = surface.load_translator(tmp_path / "before")
    for source, target in PAIRS.items():
        run = before.force(source, target)
        losses += list(
            -0.9 * np.array(run.log_probs) - 0.1 * surface.distributions(run)().numpy().mean(-1)
        )
    step = log(tmp_path / "after")[0]
    assert step[surface.RATE] == 0.02
    np.testing.assert_allclose(step[surface.LOSS], np.mean(losses), rtol=2e-3)
    old, new = (load_file(tmp_path / name / "model.safetensors") for name in ("before", "after"))
    moved = np.concatenate([abs(new[name].astype(float) - old[name]).ravel() for name in old])
    assert moved.max() < 1.05 * step[surface.RATE]
    np.testing.assert_allclose(np.median(moved[moved > 0.005]), step[surface.RATE], rtol=0.02)
    assert (moved > 0.9 * step[surface.RATE]).mean() > 0.5


def test_a_run_that_was_stopped_goes_on_exactly(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    parts = tmp_path / "parts"
    words = (
        f"{surface.TRAIN} {SMALL} --toy copy --batch-positions 512 --steps 30 --evaluate-every 30 "
        "--output"
    )
    command(words, whole)
    command(words, parts, "--obey-input", typed="stop\n", code=130)
    assert len(log(parts)) < 30
    command(words, parts, "--resume")
    assert (whole / "model.safetensors").read_bytes() == (parts / "model.safetensors").read_bytes()
    assert [line[surface.LOSS] for line in log(whole)] == [
        line[surface.LOSS] for line in log(parts)
    ]


def test_reverse_is_learnt_in_25_seconds_and_its_map_shows_it(tmp_path: Path) -> None:
    words = (
        f"{surface.TRAIN} {SMALL} --toy reverse --batch-positions 512 --learning-rate 1e-2 "
        "--warmup 50"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command(f"{words} --steps 800 --evaluate-every 800 --checkpoint-every 800 --output", tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 25
    assert log(tmp_path)[-1][surface.EXACT] >= 0.99
    run = surface.load_translator(tmp_path).translate("f a d c")
    assert run.text == "c d a f"
    assert run.attention.weights("cross", 0).mean(0)[:4].argmax(-1).tolist() == [3, 2, 1, 0]


def test_commands_translate_lines_align_words_and_write_a_page(tmp_path: Path) -> None:
    model = ["--model", surface.REVERSE]
    gold = tmp_path / "gold.tsv"
    page = tmp_path / "run.html"
    assert command(surface.TRANSLATE, *model, typed="a b c\n\nd a\n").splitlines() == [
        "c b a",
        "",
        "a d",
    ]
    gold.write_text("a b c\tc b a\t0-2 1-1 2-0\n")
    assert command(f"{surface.ALIGN} --links --head 1.1", *model, "--data", gold) == "0-2 1-1 2-0\n"
    table = command(surface.ALIGN, *model, "--data", gold).splitlines()
    assert [line.split()[:3] for line in table[-2:]] == [["1", "1", "0.0"], ["1", "2", "0.0"]]
    command(surface.PAGE, *model, "a b c", "--output", page)
    assert page.stat().st_size > 100_000
