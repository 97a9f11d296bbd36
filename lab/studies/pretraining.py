"""`python -m lab pretraining`: translators in pairs, one whose encoder began as a language model."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Annotated

from lab.measurement import Folder, Json, Pairs, measurement
from lab.study import Study, chart, curves, gap, interval
from lab.twins.twins import score_pairs, summary
from transformer.runs.translator import load_translator
from transformer.text.numbers import number
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


def told(found: Json) -> Study:
    """Gain from pretraining with few pairs and with more."""
    compared = found["compared"]
    gaps = {
        what: [each["models"][PRETRAINED][what]["difference"] for each in compared]
        for what in ("bleu", "loss")
    }
    bleu, loss = (
        (sum(each["low"] > 0 for each in gaps[what]), sum(each["high"] < 0 for each in gaps[what]))
        for what in ("bleu", "loss")
    )
    shares = sorted({each["percent"] for each in compared})
    scratch = [
        each["models"][SCRATCH]["bleu"]["value"]["value"] for each in compared if each["percent"] == shares[0]
    ]
    means = [
        (
            "mean over seeds",
            f"{share} % of the pairs",
            statistics.fmean(
                difference["value"]
                for difference, each in zip(gaps["bleu"], compared, strict=True)
                if each["percent"] == share
            ),
        )
        for share in shares
    ]
    return Study(
        topic="Language model",
        question="Does it help a translator if its encoder began as a language model?",
        finding=f"Of {len(compared)} pairs of runs, beginning as a language model surely raises BLEU in "
        f"{bleu[0] or 'none'} and lowers it in {bleu[1] or 'none'}, and surely lowers the loss in "
        f"{loss[1] or 'none'} and raises it in {loss[0] or 'none'}.",
        parts=[
            "Each comparison trains the same small translator on a part of the sentence pairs. One encoder "
            "begins with random weights, the other with those of a language model that has read English text "
            "only. The comparison has one catch: the language model saw only what came before a word; the "
            "encoder sees both sides, so it must also learn to use what follows. On average, beginning as a "
            "language model gives "
            + ", ".join(f"{number(value, '+.1f')} BLEU with {place}" for _, place, value in means)
            + f". With {shares[0]} % a translator from scratch reaches {min(scratch):.1f} to "
            f"{max(scratch):.1f} BLEU: it translates next to nothing, so there the loss says more.",
            *(
                chart(
                    "dots",
                    f"{name} of the pretrained encoder's translator, difference",
                    ("difference", "run", f"{name}, difference", "low", "high"),
                    [
                        ("pretrained − scratch", _run(each), *interval(difference))
                        for each, difference in zip(compared, gaps[what], strict=True)
                    ],
                )
                for what, name in (("bleu", "BLEU"), ("loss", "Loss"))
            ),
            chart(
                "bars",
                "Mean difference in BLEU over the seeds",
                ("mean", "pairs", "BLEU"),
                means,
            ),
            *(
                curves(
                    f"Loss on the validation pairs, {share} % of the pairs",
                    ("encoder", "step", "nats a token"),
                    {
                        f"{how}, seed {each['seed']}": each["curves"][how]
                        for each in compared
                        if each["percent"] == share
                        for how in (SCRATCH, PRETRAINED)
                    },
                )
                for share in shares
            ),
        ],
        method=f"BLEU of {found['sentences']:,} test sentences, greedy. The language model read 5.6 million "
        "words in 1,500 steps; pretraining is meant for what is learned from plain text, of which there is "
        "more than of translations.",
        sources="Dai & Le 2015.",
    )


def _run(each: Json) -> str:
    return f"{each['percent']} %, seed {each['seed']}"


@measurement("assets/models/language/pretraining.json", studies={"pretraining": told})
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
    return (
        f"{scratch['value']['value']:.1f} BLEU from scratch, {pretrained['value']['value']:.1f} pretrained: "
        f"{gap(pretrained['difference'])}."
    )
