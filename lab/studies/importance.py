"""`python -m lab importance`: what a model's loss and BLEU lose without its heads."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from lab.heads.measures import STATISTICS
from lab.importance.ablation import Forced, all_heads, switched_off, translated
from lab.measurement import Json, Pairs, Subject, listed, measurement, one_thread, report
from lab.study import Chart, Study, chart, curves, interval, named
from lenses.measures.agreement import agreement
from transformer.commands.arguments import shown
from transformer.model.sites import AttentionKind, PlacedHead
from transformer.runs.bootstrap import bleu, bleu_statistics, compare, ratio, rounded
from transformer.runs.translator import Translator
from transformer.storage.description import IMPORTANCE_FILE, read_heads
from transformer.storage.files import read_json
from transformer.text.numbers import number
from transformer.text.pairs import SentencePair, read_pairs

WAYS = ("zero", "mean")
POINTS = 10
"""Parts of a pruning curve: a tenth of the heads is switched off at a time."""
_WHOLE, _AT_ONCE = "whole", 25


def told(found: Json) -> Study:
    """Which heads the loss needs, what predicts it, and how many can go."""
    by = "mean" if "mean" in found["alone"] else "zero"
    kinds, pruning = found["alone"][by], found["pruning"]
    cells = [cell for grid in kinds.values() for row in grid for cell in row]
    unsure, half = sum(cell["low"] <= 0 for cell in cells), len(pruning["heads"]) // 2
    chance = [float(np.mean(each)) for each in zip(*pruning["random"], strict=True)]
    off = pruning["heads"][half]
    return Study(
        topic="Heads",
        question=f"Which heads does “{found['model']}” need?",
        finding=f"Without {unsure} of its {len(cells)} heads, one at a time, the loss does not surely rise; "
        f"without {off} of them at once it goes from {pruning['ranked'][0]:.2f} to "
        f"{pruning['ranked'][half]:.2f} nats a token, if those go that the gradient calls least important.",
        parts=[
            f"The loss of given translations is {found['loss']:.2f} nats a token with all heads. Each head "
            f"is then replaced by {_REPLACED[by]}. A rise says that the others cannot make up for it at "
            "once; a head without a rise may still do work that others do too. A rise is called sure if its "
            "interval lies above 0; of heads without any effect, one in forty would seem so by chance.",
            r"$$\Delta_h = \mathcal{L}_{\text{without } h} - \mathcal{L}, \qquad "
            r"I_h = \mathbb{E}_x \left|\, \partial \mathcal{L}(x) / \partial \xi_h \,\right|$$",
            *(_most(kind, grid) for kind, grid in kinds.items()),
            *(_grid(kind, grid) for kind, grid in kinds.items()),
            chart(
                "bars",
                "Heads without which the loss surely rises, and the others",
                ("loss", "kind", "heads"),
                [
                    (rise, kind, sum((cell["low"] > 0) == sure for row in grid for cell in row))
                    for kind, grid in [
                        ("all", [cells]),
                        *((named(kind), grid) for kind, grid in kinds.items()),
                    ]
                    for rise, sure in (("surely rises", True), ("does not surely rise", False))
                ],
            ),
            *_predicted(found),
            "Heads are then set to zero by tenths, those with the smallest gradient first, ranked again "
            f"each time. With {off} of {pruning['heads'][-1]} heads off, the loss is "
            f"{pruning['ranked'][half]:.2f} nats a token, and {chance[half]:.2f} if they are chosen by "
            "chance. Nothing was trained again. The gradients that rank the heads come from the same "
            "sentence pairs as the loss, which favours that order.",
            *(
                curves(
                    caption,
                    ("order", "heads off", quantity),
                    {name: zip(pruning["heads"], values, strict=True) for name, values in orders.items()},
                )
                for caption, quantity, orders in (
                    (
                        "Loss while more and more heads, of all kinds, write zero",
                        "nats a token",
                        {_RANKED: pruning["ranked"], "random orders, mean": chance},
                    ),
                    (
                        f"BLEU of greedy translations of {pruning['translations']} sentences, the same heads "
                        "off",
                        "BLEU",
                        {_RANKED: pruning["bleu"]["ranked"], "a random order": pruning["bleu"]["random"]},
                    ),
                )
            ),
        ],
        method=f"{found['data']}. Intervals: paired bootstrap over sentences. Gradient measure: for all "
        "heads in one pass. A rank correlation by chance: 95 of 100 permutations of the heads lie inside it.",
        sources="Michel et al. 2019; Voita et al. 2019.",
    )


_RANKED = "smallest gradient first"
_REPLACED = {"mean": "its mean over many sentences", "zero": "zero"}


def _most(kind: str, grid: Sequence[Sequence[Json]]) -> str:
    """The head of a kind that the loss needs most surely: the lower end of its interval is the highest."""
    places = [(layer, head) for layer, row in enumerate(grid) for head in range(len(row))]
    layer, head = max(places, key=lambda at: float(grid[at[0]][at[1]]["low"]))
    value, low, high = (number(each, ".3f") for each in interval(grid[layer][head]))
    return (
        f"In {named(kind)}, the loss rises most surely without **head {head + 1} of layer {layer + 1}**: by "
        f"{value} ({low} to {high})."
    )


def _grid(kind: str, grid: Sequence[Sequence[Json]]) -> Chart:
    return chart(
        "grid",
        f"Rise of the loss without each head of {named(kind)}, nats a token",
        ("layer", "head", "rise of the loss", "low", "high"),
        [
            (f"layer {i}", str(j), *interval(cell))
            for i, row in enumerate(grid, start=1)
            for j, cell in enumerate(row, start=1)
        ],
    )


def _predicted(found: Json) -> list[str | Chart]:
    """Whether what heads look at tells how much they matter."""
    rows = found.get("predicted")
    if not rows:
        return []
    others = [row for row in rows if row[1] != _GRADIENT]
    beyond = sum(not low <= value <= high for _, _, value, low, high in others)
    return [
        f"Do statistics of a head predict how much it matters? Of {len(others)} rank correlations of "
        f"importance with a statistic of heads, {beyond} lie outside what permuted heads give in 95 of 100 "
        f"cases; by chance alone, one in twenty would.",
        chart(
            "grid",
            "Rank correlation of importance with the gradient measure and with statistics of heads",
            ("statistic", "kind", "rank correlation", "by chance, from", "to"),
            [(statistic, named(kind), *numbers) for kind, statistic, *numbers in rows],
        ),
    ]


def predicted(directory: Path) -> list[list[Any]]:
    """Rank correlations of importance with the gradient measure and each statistic of `heads.json`, by kind.

    Rows are kind, statistic, correlation, and the ends of what 95 of 100 permutations of the heads give.
    """
    found, known = read_json(directory / IMPORTANCE_FILE), (read_heads(directory) or {}).get("heads", {})
    grids, rows = found["alone"].get("mean") or found["alone"]["zero"], []
    for kind, grid in grids.items():
        wanted = np.array([[cell["value"] for cell in row] for row in grid])
        columns = {_GRADIENT: np.array(found["gradient"][kind])}
        for name, label in _LABELS.items():
            columns[label] = np.array(
                [[head.get(name, np.nan) for head in row] for row in known.get(kind, [])]
            )
        for label, values in columns.items():
            if values.shape == wanted.shape and np.isfinite(values).all():
                each = agreement(values.ravel(), wanted.ravel())
                if each.value == each.value:
                    rows.append([kind, label, *(round(end, 4) for end in (each.value, each.low, each.high))])
    return rows


_GRADIENT = "gradient measure"
_LABELS = {each.name: each.label for each in STATISTICS} | {"aer": "alignment error"}


@measurement(
    IMPORTANCE_FILE, parts=["alone", "gradient", "predicted", "pruning"], studies={"importance": told}
)
def importance(
    model: Subject,
    data: Annotated[Pairs, "source<TAB>target lines; targets are forced"],
    sentences: Annotated[int, "use the first N pairs of --data"] = 500,
    orders: Annotated[int, "random orders of the pruning curve"] = 3,
    translations: Annotated[int, "sentences that are translated for BLEU"] = 150,
) -> Json:
    """Switches heads off: the loss without each, the gradient measure, and curves of pruning."""
    pairs, translator = list(read_pairs(data))[:sentences], model.translator
    heads = all_heads(translator)
    with one_thread():
        forced = Forced(translator, pairs)
        whole = forced.losses()
    return {
        "data": f"{len(pairs)} pairs of {shown(data)}, given targets forced",
        "sentences": len(pairs),
        "loss": rounded(ratio(whole.sum(0))),
        "alone": lambda: {
            by: _alone(forced, heads, whole, by)
            for by in WAYS
            if by == "zero" or translator.means is not None
        },
        "gradient": lambda: _by_kind(heads, [float(each) for each in forced.sensitivity(heads)]),
        "predicted": lambda: predicted(model.directory),
        "pruning": lambda: pruning(forced, pairs[:translations], orders),
    }


def _alone(forced: Forced, heads: Sequence[PlacedHead], whole: np.ndarray, by: str) -> Json:
    """Rise of the loss without each head, in nats a token, with the interval of the paired bootstrap."""
    found = {_WHOLE: whole}
    for head in heads:
        observer = switched_off(forced.translator, [head], by)
        found[str(head)] = forced.losses(observer, head[0] is AttentionKind.ENCODER)
    compared = compare(found, ratio, _WHOLE)
    report(f"each head alone, {by}")
    return _by_kind(heads, [compared[str(head)]["difference"] for head in heads])


def _by_kind(heads: Sequence[PlacedHead], values: Sequence[object]) -> Json:
    """Values of heads as lists of layers, by kind."""
    found: dict[str, list[list[object]]] = {}
    for (kind, layer, _), value in zip(heads, values, strict=True):
        layers = found.setdefault(str(kind), [])
        if layer == len(layers):
            layers.append([])
        layers[layer].append(round(value, 5) if isinstance(value, float) else value)
    return found


def pruning(forced: Forced, translate: Sequence[SentencePair], orders: int) -> Json:
    """Loss and BLEU while more and more heads are switched off by zero.

    "ranked" takes away the heads with the smallest gradient measure, ranked again at every point; "random"
    are orders by chance. BLEU is that of the ranked order and of the first random one.
    """
    heads = all_heads(forced.translator)
    steps = [round(len(heads) * at / POINTS) for at in range(POINTS + 1)]
    ranked: list[PlacedHead] = []
    for begin, end in pairwise(steps):
        left = [head for head in heads if head not in ranked]
        felt = forced.sensitivity(left, ranked)
        ranked += [left[at] for at in np.argsort(felt, kind="stable")[: end - begin]]
        report(f"ranked {end} of {len(heads)} heads")
    shuffled = [random.Random(seed).sample(heads, len(heads)) for seed in range(1, orders + 1)]

    def curve(order: Sequence[PlacedHead]) -> list[float]:
        lost = [forced.losses(switched_off(forced.translator, order[:n])).sum(0) for n in steps]
        values: list[float] = listed(ratio(np.stack(lost)))
        return values

    def scores(order: Sequence[PlacedHead]) -> list[float]:
        return [round(_bleu(forced.translator, translate, order[:n]), 1) for n in steps]

    found = {"heads": steps, "ranked": curve(ranked), "random": [curve(order) for order in shuffled]}
    report("losses of the curves")
    return found | {
        "order": [[str(kind), layer, head] for kind, layer, head in ranked],
        "translations": len(translate),
        "bleu": {"ranked": scores(ranked), "random": scores(shuffled[0])},
    }


def _bleu(translator: Translator, pairs: Sequence[SentencePair], off: Sequence[PlacedHead]) -> float:
    observer = switched_off(translator, off)
    outputs: list[str] = []
    for start in range(0, len(pairs), _AT_ONCE):
        texts = [pair.source for pair in pairs[start : start + _AT_ONCE]]
        outputs += translated(translator, texts, observer)
    return float(bleu(bleu_statistics(outputs, [pair.target for pair in pairs]).sum(0)))
