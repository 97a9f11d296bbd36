"""Sentences of the page Recurrent, with numbers from this run or from the results."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from figures.base import labels
from figures.base.bars import percent
from figures.base.captions import quote
from figures.pages.positions import twin_name
from transformer.hub.files import size
from transformer.model.config import RecurrentConfig
from ui.controls.text import plain
from ui.views.recurrent.twins import NAMES, Side

Json = dict[str, Any]


def name(each: Side) -> str:
    """What the page calls a model."""
    config = each.run.config
    if isinstance(config, RecurrentConfig):
        return f"recurrent twin ({NAMES[config.score]})"
    return f"Transformer ({labels.head_phrase(*each.head)})"


def title(each: Side) -> str:
    """The same as a title; which head of the Transformer is shown stands beside it."""
    config = each.run.config
    return f"Recurrent twin ({NAMES[config.score]})" if isinstance(config, RecurrentConfig) else "Transformer"


def looks(sides: Sequence[tuple[Side, int | None]]) -> str:
    """Where each model looks for the token of the cursor."""
    (one, row), *others = sides
    assert row is not None
    token = f"**{plain(quote(one.run.target_tokens[row]))}**"
    told = [f"Predicting {token}, the {plain(name(one))} puts {_look(one, row)}."]
    for each, at in others:
        has = f"puts {_look(each, at)}" if at is not None else "does not write this token"
        told.append(f"The {plain(name(each))} {has}.")
    return " ".join(told)


def _look(each: Side, row: int) -> str:
    weights = each.run.weights("cross", *each.head)[row]
    best = int(np.argmax(weights))
    on = plain(quote(each.run.source_tokens[best]))
    return f"{percent(float(weights[best]))} of its weight on **{on}**{_rest(float(weights.sum()))}"


def _rest(total: float) -> str:
    """What a row of local attention, which a Gaussian multiplies, does not give out."""
    return "" if total > 0.995 else f" (its row sums to {total:.2f}: the Gaussian takes the rest)"


def shown(each: str, results: Json) -> str:
    """What tables and figures call a model: its score, or Transformer."""
    return "Transformer" if each == results["reference"] else twin_name(each)


def sizes(results: Json | None) -> str:
    """What should be known before one model is called better: seeds, products, sizes."""
    told = (
        "One seed each: second seeds moved three positional twins by up to half a BLEU; no recurrent twin "
        "has a second seed. The recurrent twins were trained "
        "with bfloat16 products, the Transformer with float32; data, pieces, batches and steps are the same."
    )
    if results is None:
        return told
    listed = ", ".join(
        f"{shown(each, results)} {found['parameters'] / 1e6:.2f} M parameters ({size(found['bytes'])})"
        for each, found in results["models"].items()
    )
    return f"{told} Sizes: {listed}."


def gap(cell: Json, digits: int = 1) -> str:
    """A difference with its interval."""
    numbers = (labels.number(cell[end], f"+.{digits}f") for end in ("value", "low", "high"))
    value, low, high = numbers
    return f"{value} ({low} to {high})"


def holds_zero(cell: Json) -> bool:
    """Whether the interval of a difference holds 0."""
    return bool(cell["low"] <= 0 <= cell["high"])


def scores(results: Json) -> str:
    """Which twins differ from the Transformer on all sentences, and by how much."""
    reference, found = results["reference"], results["scores"]
    base = found[reference]["bleu"]["value"]
    cells = {each: values["bleu"]["difference"] for each, values in found.items() if each != reference}
    best = max(cells, key=lambda each: float(cells[each]["value"]))
    told = (
        f"On {results['sentences']:,} test sentences, the Transformer ({reference}) has "
        f"**{base['value']:.1f} BLEU**; the best recurrent twin, **{twin_name(best)}**, differs from it by "
        f"{gap(cells[best])}."
    )
    unsure = [twin_name(each) for each, cell in cells.items() if holds_zero(cell)]
    return told + (f" The interval includes 0 for {', '.join(unsure)}." if unsure else "")


def table(results: Json) -> str:
    """All models in Markdown: size, BLEU, and differences from the Transformer on short and long "
    "sentences."""
    groups = results["lengths"]["groups"]
    ends = groups[0], groups[-1]
    names = [f"{each['first']} to {each['last']} tokens" for each in ends]
    head = ("model", "parameters", "file", "BLEU", "difference", *(f"difference, {name}" for name in names))
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for each, facts in results["models"].items():
        parts = [results["scores"][each], *(group["models"][each] for group in ends)]
        lines.append(
            [
                shown(each, results),
                f"{facts['parameters'] / 1e6:.2f} M",
                size(facts["bytes"]),
                f"{parts[0]['bleu']['value']['value']:.1f}",
                *(gap(part["bleu"]["difference"]) if "difference" in part["bleu"] else "" for part in parts),
            ]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def grows(results: Json) -> str:
    """Which twins lose ground to the Transformer as sentences grow, in loss, and which gain it."""
    reference, groups = results["reference"], results["lengths"]["groups"]
    found: dict[str, list[str]] = {"behind": [], "gains": [], "": []}
    for each in groups[0]["models"]:
        if each != reference and each in groups[-1]["models"]:
            ends = (group["models"][each]["loss"]["difference"] for group in (groups[0], groups[-1]))
            found[_trend(*ends)].append(each)
    start = "From the shortest sentences to the longest, the loss of"
    told = []
    if found["behind"]:
        told.append(f"{start} **{_listed(found['behind'])}** falls behind the Transformer's.")
    if found["gains"]:
        told.append(f"{start} **{_listed(found['gains'])}** gains on the Transformer's.")
    if found[""]:
        told.append(f"For {_listed(found[''])}, the two intervals overlap, so nothing is claimed.")
    return " ".join(told)


def _trend(first: Json, last: Json) -> str:
    """Whether a difference in loss is larger at the end (behind) or smaller; empty if the intervals "
    "overlap."""
    if last["low"] > first["high"]:
        return "behind"
    return "gains" if last["high"] < first["low"] else ""


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def falls(results: Json) -> str:
    """What becomes of the difference in loss from short sentences to long ones: its intervals are narrow."""
    reference, groups = results["reference"], results["lengths"]["groups"]
    first, last = groups[0], groups[-1]
    ends = {
        each: [group["models"][each]["loss"]["difference"] for group in (first, last)]
        for each in first["models"]
        if each != reference and each in last["models"]
    }
    parts = [f"{twin_name(each)} {gap(a, 2)} → {gap(b, 2)}" for each, (a, b) in ends.items()]
    return (
        f"Difference in loss from the Transformer, sentences of {first['first']} to {first['last']} tokens → "
        f"those of {last['first']} to {last['last']} (nats per token): {'; '.join(parts)}."
    )


def aligns(found: Json, results: Json) -> str:
    """Alignment errors on one file of hand-made links, by the better row of each model."""
    parts, rows, heads = [], set(), 1
    for each in found["predicted"]:
        row = better(found, each)
        parts.append(f"{shown(each, results)} {percent(found[row][each]['error']['value']['value'])}")
        rows.add(row)
        heads = max(heads, found[row][each]["heads"])
    which = _ROWS[rows.pop()] if len(rows) == 1 else "better of its two rows"
    chosen = f", the Transformer by the best of its {heads} heads" if heads > 1 else ""
    return (
        f"{', '.join(parts)}: each by the {which}{chosen}. The diagonal alone has "
        f"{percent(found['diagonal'])}."
    )


def better(found: Json, model: str) -> str:
    """The kind of row by which a model aligns better."""
    rows = {row: float(found[row][model]["error"]["value"]["value"]) for row in _ROWS}
    return min(rows, key=rows.__getitem__)


_ROWS = {"predicted": "row that predicts the word", "read": "row that reads the word"}


def ratios(speed: Json, reference: str) -> str:
    """The ratios of both speeds between the shortest and the longest sentences."""
    lengths = speed["lengths"]
    parts = []
    for kind, unit in (("training", "tokens per second in training"), ("writing", "time per written token")):
        found = {each: values["ratio"] for each, values in speed[kind].items() if each != reference}
        ends = [_span([ratio[at] for ratio in found.values()]) for at in (0, -1)]
        parts.append(f"**{unit}**: {ends[0]} at {lengths[0]} tokens, {ends[1]} at {lengths[-1]}")
    return f"The recurrent twins against the Transformer, as ratios: {'; '.join(parts)}."


def sequential(results: Json) -> str:
    """Why the fastest recurrent twin compares as it does on one core, and what differs elsewhere."""
    speed, reference, models = results["speed"], results["reference"], results["models"]
    others = {each: values for each, values in speed["training"].items() if each != reference}
    name = max(others, key=lambda each: others[each]["best"][-1])
    short, long = speed["lengths"][0], speed["lengths"][-1]
    first, last = others[name]["ratio"][0], others[name]["ratio"][-1]
    positions = speed["positions"]
    own, other = (models[each]["parameters"] / 1e6 for each in (name, reference))
    return (
        f"**One after another, or all at once.** Each batch has {positions:,} target tokens. A GRU must "
        f"finish one position before the next, so each step multiplies one row of every sentence: "
        f"{positions // short:,} rows at {short} tokens, {positions // long:,} at {long}. The Transformer "
        f"multiplies all {positions:,} at once. One core does a row after another in any case, so what "
        f"counts there is how much there is to multiply: “{shown(name, results)}”, with {own:.2f} M "
        f"parameters against {other:.2f} M, trains {first:.2f} times as fast at {short} tokens and "
        f"{last:.2f} times at {long}. A GPU multiplies thousands of rows at once. What would count there is "
        "how many steps must wait for an earlier one: in a GRU, one per token. No GPU was measured here."
    )


def _span(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return f"×\u00a0{low}" if low == high else f"×\u00a0{low} to {high}"


def within(results: Json) -> str:
    """What a token costs when it is written, against one that is trained on, inside each model."""
    speed = results["speed"]
    at = len(speed["lengths"]) - 1
    told = []
    for each in speed["training"]:
        trained = 1000 / speed["training"][each]["best"][at]
        told.append(f"{shown(each, results)} {speed['writing'][each]['best'][at] / trained:.1f}")
    return (
        f"Writing a token takes this many times as long as training on one (forward and backward), at "
        f"{speed['lengths'][at]} tokens: {', '.join(told)}."
    )


def learned(found: Json) -> str:
    """What hard attention costs on the toy task: steps, exactness and variance."""
    soft, hard = found["methods"]["soft"], found["methods"]["hard"]
    reached = [_reached(each, 0.9) for each in (soft, hard)]
    ends = [_share(each["exact"]) for each in (soft, hard)]
    times = statistics.median(
        statistics.fmean(run[i] for run in hard["variance"])
        / statistics.fmean(run[i] for run in soft["variance"])
        for i in range(1, len(soft["steps"]))
    )
    return (
        f"Soft attention first gives back 90{labels.PER_CENT} of the sequences {reached[0]}, hard attention "
        f"{reached[1]}; after {soft['steps'][-1]:,} steps they give back {ends[0]} and {ends[1]}. In the "
        f"middle of the measurements, the variance of the gradient of hard attention is **{times:.0f} "
        "times** that of soft attention at the same step."
    )


def _reached(curves: Json, share: float) -> str:
    """The first measured steps at which each seed reaches a share."""
    steps = []
    for run in curves["exact"]:
        at = next((step for step, exact in zip(curves["steps"], run, strict=True) if exact >= share), None)
        if at is None:
            return f"in not every run of {len(curves['exact'])}"
        steps.append(at)
    low, high = min(steps), max(steps)
    return f"after {low:,} steps" if low == high else f"after {low:,} to {high:,} steps"


def _share(runs: list[list[float]]) -> str:
    low, high = (round(100 * each, 1) for each in (min(r[-1] for r in runs), max(r[-1] for r in runs)))
    return f"{low:g} to {high:g}{labels.PER_CENT}"


def baseline(found: Json) -> str:
    """What the baseline takes from the variance: where it helps most, and how often it helps."""
    hard = found["methods"]["hard"]
    means = [
        [statistics.fmean(run[i] for run in hard[name]) for i in range(len(hard["steps"]))]
        for name in ("variance", "without")
    ]
    shares = [with_ / without for with_, without in zip(*means, strict=True)]
    at = min(range(len(shares)), key=shares.__getitem__)
    helps = sum(share < 1 for share in shares)
    return (
        f"The baseline helps most at step {hard['steps'][at]:,}: there it takes the variance from "
        f"{means[1][at]:.2f} to {means[0][at]:.2f}. It lowers the variance at {helps} of {len(shares)} "
        "measured steps. "
        "Once the model is mostly right, most rewards are near 0, and little is left to take away."
    )
