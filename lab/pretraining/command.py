"""`python -m lab pretraining`: what an encoder gains from beginning as a language model."""

from __future__ import annotations

from typing import Annotated

from lab.measurement import Folder, Json, Pairs, measurement
from lab.pretraining.pretraining import PRETRAINED, SCRATCH, compare, runs_in
from lab.twins.twins import score_pairs
from transformer.runs.translator import load_translator
from transformer.text.pairs import read_pairs


@measurement()
def pretraining(
    runs: Annotated[Folder, "holds scratch-P-S and pretrained-P-S: runs on P %% of the pairs with seed S"],
    data: Annotated[Pairs, "pairs to score"],
) -> Json:
    """Compares translators whose encoder began as a language model with others from scratch."""
    pairs, compared = read_pairs(data), []
    for (percent, seed), both in sorted(runs_in(runs).items()):
        scored = {how: score_pairs(load_translator(path), pairs) for how, path in both.items()}
        compared.append({"percent": percent, "seed": seed, **compare(scored, both)})
        print(f"{percent} % of the pairs, seed {seed}: {_sentence(compared[-1]['models'])}", flush=True)
    return {"sentences": len(pairs), "compared": compared}


def _sentence(models: Json) -> str:
    scratch, pretrained = (models[how]["bleu"] for how in (SCRATCH, PRETRAINED))
    gap = pretrained["difference"]
    return (
        f"{scratch['value']['value']:.1f} BLEU from scratch, {pretrained['value']['value']:.1f} pretrained "
        f"({gap['value']:+.1f} [{gap['low']:+.1f}, {gap['high']:+.1f}])."
    )
