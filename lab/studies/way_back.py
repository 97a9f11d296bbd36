"""`python -m lab way-back`: whether the head of a token's strongest way back matters more than another."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from lab.measurement import Json, Pairs, Subject, measurement, one_thread
from lab.studies.faithfulness import runs_of
from lab.study import Study, chart, gap, interval
from lenses.measures.way_back import way_back as follow
from transformer import interventions
from transformer.commands.arguments import shown
from transformer.runs.bootstrap import cell, resamples
from transformer.storage.description import WAY_BACK_FILE
from transformer.text.numbers import number
from transformer.text.pairs import read_pairs

_NAMES = ("the head of the strongest way", "another head of its layer")


def told(found: Json) -> Study:
    """What switching the head of the strongest way off costs, beside another head of the layer."""
    own, other, apart = (found[name] for name in ("own", "other", "apart"))
    share = number(100 * found["more"], ".0f")
    return Study(
        topic="Explanation",
        question=f"Does a token of “{found['model']}” need the head of its strongest way back?",
        finding=f"It loses {number(-own['value'], '.2f')} nats without it, and "
        f"{number(-other['value'], '.2f')} without another head of the same layer.",
        parts=[
            "A way back splits a logit into sums, with attention weights and the σ of every norm held fixed: "
            "a part, not an effect. So here the head whose way adds most to the token's logit is switched "
            "off and the model runs again; the control is a random other head of that layer.",
            chart(
                "dots",
                "Δ log p of the token with one head switched off, in nats",
                ("head", "switched off", "nats", "low", "high"),
                [
                    (found["model"], name, *interval(each))
                    for name, each in zip((*_NAMES, "difference"), (own, other, apart), strict=True)
                ],
            ),
            f"The difference is {gap(apart, 2)} nats; the head of the strongest way costs more in {share} % "
            "of the sentences.",
            chart(
                "bars",
                "Sentences in which the one head costs more than the other",
                ("", "sentences", "%"),
                [
                    ("share", name, 100 * value)
                    for name, value in zip(_NAMES, (found["more"], 1 - found["more"]), strict=True)
                ],
            ),
        ],
        method=f"{found['data'].capitalize()}: one random token of each; 95 % intervals by resampling.",
        sources="Elhage et al. 2021 (path expansion); Michel et al. 2019 (ablation of heads).",
    )


@measurement(WAY_BACK_FILE, studies={"way-back": told})
def way_back(
    model: Subject,
    data: Annotated[Pairs, "source<TAB>target lines; sources are read"],
    sentences: Annotated[int, "use the first N pairs of --data"] = 100,
    seed: Annotated[int, "seed of the drawn tokens and heads"] = 1,
) -> Json:
    """Δ log p of a token without the head of its strongest way back, beside another head of the layer.

    One random token of each sentence; the head is that of the way with the largest positive part of the
    token's logit. The control is a random other head of the same layer and kind.
    """
    translator, random = model.translator, np.random.default_rng(seed)
    found = list[list[float]]()
    with one_thread():
        for run in runs_of(translator, [pair.source for pair in read_pairs(data)], sentences):
            step = int(random.integers(len(run.steps)))
            back = follow(translator.model, run, step, run.steps[step].token_id)
            way = next((each for each in back.ways if each.value > 0), None)
            if way is None or way.head.layer is None:
                continue
            kind = "decoder" if way.writer is None else "cross"
            others = [head for head in range(run.config.n_heads) if head != way.head.head]
            heads = way.head.head, int(random.choice(others))
            off = [interventions.ablate(kind, way.head.layer, head) for head in heads]
            found.append(
                [
                    translator.force(
                        run.source_text, run.target_ids, capture=False, interventions=[each]
                    ).log_probs[step]
                    - run.log_probs[step]
                    for each in off
                ]
            )
    table: Any = np.array(found, np.float64)
    columns = {"own": table[:, 0], "other": table[:, 1], "apart": table[:, 0] - table[:, 1]}
    draws = resamples(len(table))
    return {
        "data": f"the model's own translations of {len(table)} sentences of {shown(data)}",
        "sentences": len(table),
        **{name: cell(float(each.mean()), draws @ each / len(each)) for name, each in columns.items()},
        "more": float((columns["apart"] < 0).mean()),
    }
