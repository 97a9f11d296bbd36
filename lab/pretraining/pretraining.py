"""Runs of translators in pairs: one encoder began as a language model, the other from scratch."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from lab.twins.twins import Scored, summary
from transformer.text.pairs import DataError
from transformer.training.runs.files import LOG_FILE

SCRATCH, PRETRAINED = "scratch", "pretrained"
_RUN = re.compile(rf"({SCRATCH}|{PRETRAINED})-(\d+)-(\d+)")

Runs = dict[tuple[int, int], dict[str, Path]]
"""Directories of runs by percentage of the pairs and seed, and by how the encoder began."""


def runs_in(folder: Path) -> Runs:
    """The runs of a folder that have a counterpart."""
    found: Runs = {}
    for path in sorted(folder.glob("*")):
        if match := _RUN.fullmatch(path.name):
            found.setdefault((int(match[2]), int(match[3])), {})[match[1]] = path
    both = {key: runs for key, runs in found.items() if set(runs) == {SCRATCH, PRETRAINED}}
    if not both:
        raise DataError(f"{folder} holds no runs named {SCRATCH}-P-S and {PRETRAINED}-P-S.")
    return both


def compare(scored: dict[str, Scored], runs: dict[str, Path]) -> dict[str, Any]:
    """BLEU and loss of both, the difference with its paired interval, and the loss along the way."""
    curves = {how: validation_losses(path) for how, path in runs.items()}
    return {"models": summary(scored, SCRATCH), "curves": curves}


def validation_losses(run: Path) -> list[tuple[int, float]]:
    """Steps of a run with their loss on the validation pairs, in nats per token."""
    lines = (json.loads(line) for line in (run / LOG_FILE).read_text("utf-8").splitlines())
    return [(line["step"], round(line["valid_loss"], 4)) for line in lines if "valid_loss" in line]
