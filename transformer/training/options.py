"""The settings of a training run, and the learning rate that follows from them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

Schedule = Literal["linear", "constant", "inverse_sqrt"]
Precision = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Settings of a training run."""

    steps: int = 10_000  # total number of optimiser steps
    batch_positions: int = 2_500  # largest number of positions of either side of one batch, with padding
    accumulate: int = 1  # batches per optimiser step and process
    # "linear": warm-up to `learning_rate`, then straight down to 0 at the last step; "constant": warm-up,
    # then the same rate, then straight down to 0 over the last `decay_steps`; until the decay begins, a run
    # can be resumed with more `steps`; "inverse_sqrt": the paper's schedule (section 5.3), with its own peak
    # (d_model · warmup)^-0.5
    schedule: Schedule = "linear"
    # peak of the linear and the constant schedule; a factor on the paper's schedule
    learning_rate: float = 1.5e-3
    warmup: int = 400  # steps of rising learning rate
    decay_steps: int = 2_000  # steps of falling learning rate at the end of the constant schedule
    weight_decay: float = 0.01  # weight decay of AdamW; biases and layer norms are exempt
    beta1: float = 0.9  # parameters of Adam; the paper uses 0.9, 0.98, 1e-9 (section 5.3)
    beta2: float = 0.98  # parameters of Adam; the paper uses 0.9, 0.98, 1e-9 (section 5.3)
    epsilon: float = 1e-9  # parameters of Adam; the paper uses 0.9, 0.98, 1e-9 (section 5.3)
    label_smoothing: float = 0.1  # share of the target spread over the vocabulary (section 5.4)
    clip: float = 1.0  # largest norm of the gradient; 0 does not clip
    average_decay: float = 0.999  # decay per step of the running average of the weights; 0 keeps no average
    seed: int = 1  # seed of weights, data order and dropout
    evaluate_every: int = 500  # intervals in steps; the last step always does both
    checkpoint_every: int = 250  # intervals in steps; the last step always does both
    compile: bool = False  # whether `torch.compile` compiles the model (CUDA)
    # Type of the matrix products; weights, sums and optimiser stay in float32. "auto" is "bfloat16" on CUDA
    # and "float32" elsewhere. On a CPU with 16-bit units "bfloat16" can be twice as fast.
    precision: Precision = "auto"
    guided_alignment: str = ""
    guided_weight: float = 0.05

    def __post_init__(self) -> None:
        counts = ("steps", "batch_positions", "accumulate", "warmup", "decay_steps")
        for name in (*counts, "evaluate_every", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1.")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate is {self.learning_rate}; it must be above 0.")
        if not self.guided_weight > 0:
            raise ValueError(f"guided_weight is {self.guided_weight}; it must be above 0.")
        for name in ("beta1", "beta2", "label_smoothing", "average_decay"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be from 0 to below 1.")
        for name, choices in (("schedule", get_args(Schedule)), ("precision", get_args(Precision))):
            if getattr(self, name) not in choices:
                allowed = f"{', '.join(choices[:-1])} or {choices[-1]}"
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be {allowed}.")

    def to_dict(self) -> dict[str, Any]:
        """The options as JSON values."""
        return asdict(self)


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
