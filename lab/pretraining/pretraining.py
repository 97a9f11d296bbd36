"""`python -m lab pretraining`: translators in pairs, one whose encoder began as a language model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

from lab.measurement import Folder, Json, Pairs, measurement
from lab.twins.twins import score_pairs, summary
from transformer.runs.translator import load_translator
from transformer.text.pairs import DataError, read_pairs
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


def validation_losses(run: Path) -> list[tuple[int, float]]:
    """Steps of a run with their loss on the validation pairs, in nats per token."""
    lines = (json.loads(line) for line in (run / LOG_FILE).read_text("utf-8").splitlines())
    return [(line["step"], round(line["valid_loss"], 4)) for line in lines if "valid_loss" in line]


@measurement()
def pretraining(
    runs: Annotated[Folder, "holds scratch-P-S and pretrained-P-S: runs on P %% of the pairs with seed S"],
    data: Annotated[Pairs, "pairs to score"],
) -> Json:
    """Compares translators whose encoder began as a language model with others from scratch."""
    pairs, compared = read_pairs(data), []
    for (percent, seed), both in sorted(runs_in(runs).items()):
        scored = {how: score_pairs(load_translator(path), pairs) for how, path in both.items()}
        models, curves = summary(scored, SCRATCH), {how: validation_losses(run) for how, run in both.items()}
        compared.append({"percent": percent, "seed": seed, "models": models, "curves": curves})
        print(f"{percent} % of the pairs, seed {seed}: {_sentence(models)}", flush=True)
    return {"sentences": len(pairs), "compared": compared}


def _sentence(models: Json) -> str:
    scratch, pretrained = (models[how]["bleu"] for how in (SCRATCH, PRETRAINED))
    gap = pretrained["difference"]
    return (
        f"{scratch['value']['value']:.1f} BLEU from scratch, {pretrained['value']['value']:.1f} pretrained "
        f"({gap['value']:+.1f} [{gap['low']:+.1f}, {gap['high']:+.1f}])."
    )
