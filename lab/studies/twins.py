"""`python -m lab positions`: runs the experiments on trained twins and writes one result file."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Literal

import numpy as np

from lab.measurement import Folder, Json, Pairs, measurement
from lab.study import Cell, Chart, Study, chart, curves, gap, interval
from lab.twins.loading import RESULTS_FILE, check_same_vocabulary, check_seeds, load_twins, read_test
from lab.twins.profiles import attention_profiles, costs, learned_tables, position_probes
from lab.twins.titles import title
from lab.twins.twins import (
    BASELINE,
    Scored,
    by_length,
    long_texts,
    score_pairs,
    shuffled_sources,
    source_lengths,
    summary,
    target_lengths,
)
from transformer.model.network import count_parameters
from transformer.runs.translator import Translator
from transformer.storage.description import WEIGHTS_FILE, model_digests
from transformer.storage.eight_bits import stored_as
from transformer.text.numbers import number
from transformer.text.pairs import read_pairs

PROBED = 1_000
"""Most pairs whose positions a linear probe reads."""


def told(found: Json) -> Study:
    """What positional encodings bring, and cost."""
    scores, baseline = _plain(found["scores"]), title(found["baseline"])
    order = sorted(
        (each for each in scores if each != found["baseline"]), key=lambda each: -_gap(scores, each)["value"]
    )
    sure = [each for each in order if not _gap(scores, each)["low"] <= 0 <= _gap(scores, each)["high"]]
    groups, norms = found["lengths"]["groups"], {each["norm"] for each in found["models"].values()}

    def told_of(sign: int) -> str:
        return ", ".join(
            f"{title(each)} ({number(value, '+.1f')})"
            for each in sure
            if sign * (value := _gap(scores, each)["value"]) > 0
        )

    return Study(
        topic="Positions",
        question="How much do positional encodings help?",
        finding=f"By their intervals, these gain BLEU against {baseline} positions: {told_of(1) or 'none'}; "
        f"these lose: {told_of(-1) or 'none'}.",
        parts=[
            f"{len(scores)} twins translate {found['sentences']:,} sentences. They differ in their "
            f"positional encoding{_PLACED * (len(norms) > 1)} alone; {len(found['scores']) - len(scores)} "
            "more models are twins with another seed. Against "
            f"{baseline}, with the 95 % interval of the paired bootstrap: "
            + ", ".join(f"{title(each)} {gap(_gap(scores, each))}" for each in sure)
            + ". Of the others nothing is claimed, nor of differences as small as those between seeds. No "
            "twin applies its encoding inside cross-attention.",
            _dots("BLEU", "BLEU of greedy translations", found["scores"], lambda each: each["bleu"]["value"]),
            *_seeds(found),
            "**Word order of the source shuffled.** The closer to its translation of the ordered source, the "
            "less a model uses the order of the source. Without positions the encoder sees a bag of words, "
            "so nothing changes.",
            _dots(
                "BLEU against the ordered translation",
                f"{found['shuffled']['sentences']:,} sentences with their words in random order",
                found["shuffled"]["models"],
                lambda each: each["bleu"]["value"],
            ),
            _dots(
                "words shared, %",
                "The same translations, words counted wherever they stand",
                found["shuffled"]["models"],
                lambda each: each["unigram_precision"]["value"],
                100,
            ),
            f"**By length of the sentence.** The last group has {groups[-1]['sentences']} sentences, those "
            f"of {groups[-1]['first']} to {groups[-1]['last']} tokens.",
            *_by_length(groups, "last", "tokens of the source, up to", baseline, "by length"),
            *_long(found["long"], baseline),
            *_attention(found["attention"]),
            *_tables(found["table"]),
            *_probe(found.get("probe")),
            *_costs(found["cost"]),
        ],
        method="Greedy translations of the Tatoeba test. Each interval holds 95 % of 1,000 bootstrap "
        "resamples of the sentences; all models share the resamples. They do not cover the luck of a "
        "training run, which the second seeds show. A previous-token head is chosen on one half of the "
        f"sentences and measured on the other. Times: median of {found['cost']['repeats']} runs on one "
        "thread.",
        sources="Vaswani et al. 2017; Gehring et al. 2017; Shaw et al. 2018; Raffel et al. 2020; Su et al. "
        "2021; Press et al. 2022.",
    )


_PLACED = " or in the place of LayerNorm, which asks for a warm-up of its own,"


def _plain(part: Json) -> Json:
    """The models without the runs of other seeds."""
    return {name: each for name, each in part.items() if "-seed" not in name}


def _gap(scores: Json, name: str) -> Json:
    difference: Json = scores[name]["bleu"]["difference"]
    return difference


def _dots(
    quantity: str, caption: str, part: Json, cell: Callable[[Json], Json | None], factor: float = 1.0
) -> Chart:
    cells = {title(name): interval(known, factor) for name, each in part.items() if (known := cell(each))}
    rows: list[Sequence[Cell]] = [("twin", name, *each) for name, each in cells.items()]
    return chart("dots", caption, ("model", "twin", quantity, "low", "high"), rows)


def _seeds(found: Json) -> list[str | Chart]:
    """By how much a second seed moves BLEU."""
    bleu = {name: each["bleu"]["value"]["value"] for name, each in found["scores"].items()}
    moved = [
        ("second seed", title(name.partition("-seed")[0]), abs(bleu[name] - bleu[name.partition("-seed")[0]]))
        for name in bleu
        if "-seed" in name
    ]
    if not moved:
        return []
    return [chart("bars", "By how much another seed moves BLEU", ("model", "twin", "BLEU"), moved)]


def _by_length(levels: Sequence[Json], place: str, across: str, baseline: str, by: str) -> list[Chart]:
    """BLEU, and the loss against the baseline's, at every length."""
    charts = []
    for measure, part, quantity, what in (
        ("bleu", "value", "BLEU", "BLEU of greedy translations"),
        ("loss", "difference", "nats a token", f"Loss of the reference, difference from {baseline}"),
    ):
        points = {
            title(name): [
                (level[place], *interval(each[measure][part]))
                for level in levels
                if part in (each := level["models"].get(name, {measure: {}}))[measure]
            ]
            for name in _plain(levels[0]["models"])
        }
        charts.append(curves(f"{what}, {by}", ("twin", across, quantity, "low", "high"), points))
    return charts


def _long(found: Json, baseline: str) -> list[str | Chart]:
    """Texts longer than in training."""
    levels = found["levels"]
    if not levels:
        return ["The test data are too small to fill a text of the trained length."]
    last = levels[-1]
    scores = {name: interval(each["bleu"]["value"]) for name, each in _plain(last["models"]).items()}
    best = max(scores, key=lambda name: scores[name][0])
    value, low, high = scores[best]
    return [
        f"**Longer than in training.** Nearly all training sources have at most {found['trained_length']} "
        f"tokens. At {last['factor']} times that length, no twin scores above {value:.1f} BLEU "
        f"({title(best)}, {low:.1f} to {high:.1f}). Test sentences are joined up to that length, which is "
        "new to all twins.",
        *_by_length(
            levels, "tokens", "tokens of the source, on average", baseline, "by length of joined sentences"
        ),
    ]


def _attention(found: Json) -> list[str | Chart]:
    """Heads that find the previous token, and how far they look."""
    models, reach = found["models"], found["reach"]
    parts: list[str | Chart] = [
        "**Heads that find the previous token.** Of each twin the best head of a stack: how often its "
        "largest weight lies on the token before, and where its weight lies by distance (the ends hold all "
        "greater ones)."
    ]
    for kind in ("encoder", "decoder"):
        parts.append(
            _dots(
                "rows, %",
                f"Rows of the best head of the {kind} that point at the previous token",
                models,
                lambda each, kind=kind: each[kind]["previous"]["accuracy"],  # type: ignore[misc]
                100,
            )
        )
    for kind, stop in (("encoder", 2 * reach + 1), ("decoder", reach + 1)):
        points = {
            title(name): zip(
                range(-reach, reach + 1),
                each[kind]["mass"][at["layer"]][at["head"]][:stop],
                strict=False,
            )
            for name, each in models.items()
            for at in [each[kind]["previous"]]
        }
        caption = f"Mean weight of a row of those heads of the {kind}, by distance"
        parts.append(curves(caption, ("twin", "distance, key − query", "weight"), points))
    return parts


def _tables(found: Json) -> list[str | Chart]:
    """Rows of a learned table that training rarely saw."""
    if not found["models"]:
        return []
    norms, seen = next(iter(found["models"].values())), found["seen"]

    def by_position(caption: str, columns: Sequence[str], values: Json, log: Literal["", "y"]) -> Chart:
        return curves(
            caption, columns, {side: enumerate(each, start=1) for side, each in values.items()}, log
        )

    return [
        f"**Learned positions that training rarely saw.** No training source reaches beyond position "
        f"{len(seen['encoder'])}: from there on, the rows keep their random start, only a little shrunk by "
        "weight decay.",
        by_position("Norm of each row in the learned tables", ("table", "position", "norm"), norms, ""),
        by_position("Training sentences that reach a position", ("side", "position", "sentences"), seen, "y"),
    ]


def _probe(found: Json | None) -> list[str | Chart]:
    if not found:
        return []
    return [
        "**Do positions reach cross-attention?** It applies no encoding, but reads the encoder's output. A "
        "linear probe, fitted on one half of the sentences, reads each token's position of the other half "
        "from that output. What it reads without any encoding comes from the words themselves. A probe shows "
        "what is there, not what the decoder uses.",
        _dots(
            "R² of the probe",
            f"Share of the positions' variance that the probe explains, {found['sentences']:,} sentences",
            found["models"],
            lambda each: each,
        ),
    ]


def _costs(found: Json) -> list[str | Chart]:
    """Time and memory of an encoder pass."""
    lengths, models = found["lengths"], found["models"]
    growth = [
        (what, title(name), math.log(each[key][-1] / each[key][-2]) / math.log(lengths[-1] / lengths[-2]))
        for what, key in (("time", "milliseconds"), ("memory", "megabytes"))
        for name, each in models.items()
        if each[key][-1] and each[key][-2]
    ]
    times = [row[2] for row in growth if row[0] == "time"]
    charts = [
        curves(
            f"{what} of an encoder pass over one text",
            ("twin", "tokens", unit),
            {
                title(name): [
                    (length, value) for length, value in zip(lengths, each[key], strict=True) if value
                ]
                for name, each in models.items()
            },
            "xy",
        )
        for what, key, unit in (("Time", "milliseconds", "milliseconds"), ("Memory", "megabytes", "MB"))
    ]
    return [
        "**Speed and memory.** Every query meets every key, so in long texts the time approaches the square "
        f"of the length: over the last doubling it grows with its power {min(times):.1f} to "
        f"{max(times):.1f}. A bias is a matrix of queries × keys while it is added, and memory grows with "
        "it; without one no matrix is kept.",
        *charts,
        chart(
            "dots",
            f"Power of the length with which a cost grows, from {lengths[-2]:,} to {lengths[-1]:,} tokens",
            ("cost", "twin", "power"),
            growth,
        ),
    ]


@measurement(
    RESULTS_FILE,
    parts=["scores", "lengths", "long", "shuffled", "attention", "probe", "table", "cost"],
    studies={"positions": told},
)
def positions(
    models: Annotated[Folder, "folder of model directories"],
    data: Annotated[Pairs, "source<TAB>target lines to test on"],
    train: Annotated[Pairs, "pairs that the twins were trained on"],
    seeds: Annotated[Folder | None, "folder of twins trained with other seeds"] = None,
    sentences: Annotated[int | None, "test on the first N pairs only"] = None,
    profiled: Annotated[int, "number of pairs whose attention is summed by distance"] = 200,
) -> Json:
    """Measures costs and benefits of positional encodings on twins that differ in nothing else."""
    twins, others = load_twins(models), {} if seeds is None else load_twins(seeds)
    check_seeds(twins, others)
    everyone, some = twins | others, next(iter(twins.values()))
    check_same_vocabulary(everyone)
    pairs, training = read_test(data, sentences), read_pairs(train)
    lengths = source_lengths(some, training)

    @cache
    def scored() -> dict[str, Scored]:
        return {name: score_pairs(twin, pairs) for name, twin in everyone.items()}

    return {
        "version": 1,
        "baseline": BASELINE,
        "sentences": len(pairs),
        "models": {
            name: describe(twin)
            | {"other_seed": name in others}
            | {"digests": model_digests(folder), "stored": stored_as(folder / WEIGHTS_FILE)}
            for name, twin in everyone.items()
            for folder in [(seeds if seeds and name in others else models) / name]
        },
        "scores": lambda: summary(scored()),
        "lengths": lambda: by_length(scored(), source_lengths(some, pairs)),
        "long": lambda: long_texts(everyone, pairs, int(np.percentile(lengths, 99))),
        "shuffled": lambda: shuffled_sources(everyone, scored(), pairs),
        "attention": lambda: attention_profiles(twins, pairs[:profiled]),
        "probe": lambda: position_probes(twins, pairs[:PROBED]),
        "table": lambda: learned_tables(twins, lengths, target_lengths(some, training)),
        "cost": lambda: costs(twins),
    }


def describe(twin: Translator) -> Json:
    """The settings in which twins differ."""
    own = sum(count_parameters(twin.model.stack(side).positions) for side in twin.config.stacks)
    return {
        "positions": twin.config.positions,
        "norm": twin.config.norm,
        "parameters": count_parameters(twin.model),
        "position_parameters": own,
    }
