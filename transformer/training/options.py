"""The settings of a training run, and the learning rate that follows from them."""

from dataclasses import dataclass
from typing import Annotated, Literal

from transformer.text.kinds import PART, Checked, above, whole

Schedule = Literal["linear", "constant", "inverse_sqrt"]
Precision = Literal["auto", "float32", "bfloat16"]
_Count = Annotated[int, whole(1)]
_Part = Annotated[float, PART]


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(Checked):
    """Settings of a training run, each with what the command line says of it."""

    steps: Annotated[_Count, "total number of optimiser steps"] = 10_000
    # with padding
    batch_positions: Annotated[
        _Count, "largest number of positions of either side of one batch"
    ] = 2_500
    accumulate: Annotated[_Count, "batches per step"] = 1  # of each process
    # "linear": warm-up to `learning_rate`, then straight down to 0 at the last step; "constant":
    # warm-up, then the same rate, then straight down to 0 over the last `decay_steps`; until the
    # decay begins, a run can be resumed with more `steps`; "inverse_sqrt": the paper's schedule
    # (section 5.3), with its own peak (d_model · warmup)^-0.5
    schedule: Annotated[
        Schedule,
        "linear (falls to 0), constant (falls only at the end) or inverse_sqrt (the paper's)",
    ] = "linear"
    learning_rate: Annotated[
        float,
        above(0),
        "peak of the linear and the constant schedule; a factor on the paper's schedule",
    ] = 1.5e-3
    warmup: Annotated[_Count, "steps of rising learning rate"] = 400
    decay_steps: Annotated[
        _Count, "steps of falling learning rate at the end of the constant schedule"
    ] = 2_000
    weight_decay: Annotated[float, "weight decay of AdamW"] = (
        0.01  # biases and layer norms are exempt
    )
    beta1: Annotated[_Part, "beta1 of Adam"] = 0.9  # the paper uses 0.9, 0.98, 1e-9 (section 5.3)
    beta2: Annotated[_Part, "beta2 of Adam"] = 0.98
    epsilon: Annotated[float, "epsilon of Adam"] = 1e-9
    label_smoothing: Annotated[_Part, "share of the target spread over the vocabulary"] = (
        0.1  # section 5.4
    )
    clip: Annotated[float, "largest norm of the gradient; 0 does not clip"] = 1.0
    average_decay: Annotated[
        _Part, "decay per step of the running average of the weights; 0 keeps no average"
    ] = 0.999
    seed: Annotated[int, "seed of weights, data order and dropout"] = 1
    evaluate_every: Annotated[_Count, "steps between evaluations"] = (
        500  # the last step always does both
    )
    checkpoint_every: Annotated[_Count, "steps between checkpoints"] = 250
    compile: Annotated[bool, "compile the layers with torch.compile"] = False  # on CUDA
    # Weights, sums and optimiser stay in float32, and "auto" is "float32". On a GPU, and on a CPU
    # with 16-bit units, "bfloat16" can be twice as fast.
    precision: Annotated[Precision, "type of matrix products: auto, float32 or bfloat16"] = "auto"


def learning_rate(options: TrainingOptions, step: int, d_model: int) -> float:
    """The learning rate of a step, counted from 1 (equation 3 for "inverse_sqrt")."""
    if options.schedule == "inverse_sqrt":
        rise: float = min(step**-0.5, step * options.warmup**-1.5)
        return options.learning_rate * d_model**-0.5 * rise
    if options.schedule == "constant":
        falling = (options.steps - step + 1) / (options.decay_steps + 1)
        return options.learning_rate * max(0.0, min(1.0, step / options.warmup, falling))
    falling = (options.steps - step + 1) / max(1, options.steps - options.warmup + 1)
    return options.learning_rate * max(0.0, min(step / options.warmup, falling))
