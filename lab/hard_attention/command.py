"""`python -m lab hard-attention`: soft and hard attention learn a toy task, in curves."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from lab.hard_attention.hard_attention import (
    BATCH,
    ESTIMATES,
    HELD_OUT,
    LONGEST,
    RATE,
    WIDTH,
    Learner,
    Method,
)
from lab.measurement import Json, measurement, one_thread, report
from transformer.lenses.scores.bootstrap import rounded


@measurement("assets/models/recurrent/hard_attention.json")
@one_thread()
def hard_attention(
    task: Annotated[Literal["copy", "reverse", "sort"], "the toy task"] = "reverse",
    steps: Annotated[int, "steps of training"] = 1000,
    every: Annotated[int, "steps between measurements"] = 50,
    seeds: Annotated[int, "models of each kind"] = 4,
) -> Json:
    """Teaches small models a toy task with soft attention and with hard attention (REINFORCE)."""

    def curves(method: Method) -> Json:
        runs = []
        for seed in range(1, seeds + 1):
            runs.append(Learner(method, task, seed).learn(steps, every))
            report(f"{method} attention, seed {seed}: {runs[-1]['exact'][-1]:.1%} exact")
        found = {name: [[rounded(each) for each in run[name]] for run in runs] for name in runs[0]}
        return found | {"steps": runs[0]["steps"]}

    return {
        "task": task,
        "longest": LONGEST,
        "d_model": WIDTH,
        "batch": BATCH,
        "learning_rate": RATE,
        "held_out": HELD_OUT,
        "estimates": ESTIMATES,
        "seeds": seeds,
        "methods": {method: curves(method) for method in get_args(Method)},
    }
