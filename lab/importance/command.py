"""`python -m lab importance`: what a model's loss and BLEU lose without its heads."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

import numpy as np

from lab.importance.ablation import Forced, all_heads, switched_off, translated
from lab.measurement import Json, Pairs, Subject, listed, measurement, one_thread, report
from transformer.commands.arguments import shown
from transformer.model.sites import AttentionKind, PlacedHead
from transformer.runs.bootstrap import bleu, bleu_statistics, compare, ratio, rounded
from transformer.runs.translator import Translator
from transformer.storage.description import IMPORTANCE_FILE
from transformer.text.pairs import SentencePair, read_pairs

WAYS = ("zero", "mean")
POINTS = 10
"""Parts of a pruning curve: a tenth of the heads is switched off at a time."""
_WHOLE, _AT_ONCE = "whole", 25


@measurement(IMPORTANCE_FILE, parts=["alone", "gradient", "pruning"])
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
