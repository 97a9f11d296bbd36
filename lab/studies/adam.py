"""`python -m lab adam`: one weight of a real run, its gradient, both running means, and Adam's steps."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import torch

from lab.measurement import Json, Pairs, measurement
from lab.study import Chart, Study, curves
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.storage.typed import typed
from transformer.text.pairs import both_sides, read_pairs
from transformer.text.vocabulary import Tokenizer
from transformer.training.batches import encode_pairs
from transformer.training.options import TrainingOptions
from transformer.training.presets import PRESETS
from transformer.training.trainer import Trainer, train

MOST_STEPS = 10_000


@dataclass(frozen=True)
class Recording:
    """Record of one weight over a run."""

    parameter: str  # the weight's matrix, as the model names it
    place: tuple[int, ...]  # its row and column, from 0
    beta1: float  # those of the optimiser
    beta2: float  # those of the optimiser
    epsilon: float  # those of the optimiser
    weight_decay: float  # those of the optimiser
    rates: tuple[float, ...]  # the learning rate of every step
    gradients: tuple[float, ...]  # the weight's gradient at every step, after clipping
    weights: tuple[float, ...]  # the weight before every step

    def __post_init__(self) -> None:
        (steps,) = {len(self.rates), len(self.gradients), len(self.weights)}
        if not 1 <= steps <= MOST_STEPS:
            raise ValueError(f"A recording has 1 to {MOST_STEPS:,} steps, not {steps:,}.")


@dataclass(frozen=True)
class Moment:
    """Adam at one step (Kingma and Ba 2015, algorithm 1; section 5.3 of the paper)."""

    step: int  # from 1
    gradient: float  # g
    mean_before: float  # m of the step before; 0 at the first
    square_before: float  # v of the step before
    mean: float  # m, the running mean of the gradient
    square: float  # v, the running mean of its square
    mean_corrected: float  # m / (1 − β₁ᵗ)
    square_corrected: float  # v / (1 − β₂ᵗ)
    rate: float  # the learning rate
    update: float  # what Adam adds to the weight
    decay: float  # what weight decay adds to it (Loshchilov and Hutter 2019)

    @property
    def size(self) -> float:
        """The usual size of the gradient: √v̂."""
        return math.sqrt(self.square_corrected)


def record(trainer: Trainer, parameter: str, place: tuple[int, ...]) -> Recording:
    """Trains from the first step to the last, and records one weight, to which weight decay applies."""
    matrix = dict(trainer.model.named_parameters())[parameter]
    gradients, weights = list[float](), list[float]()

    def note(*_: Any) -> None:
        assert matrix.grad is not None
        gradients.append(float(matrix.grad[place]))
        weights.append(float(matrix.detach()[place]))

    handle = trainer.optimizer.register_step_pre_hook(note)
    try:
        rates = [done.learning_rate for done in train(trainer)]
    finally:
        handle.remove()
    options = trainer.options
    adam = options.beta1, options.beta2, options.epsilon, options.weight_decay
    return Recording(parameter, place, *adam, tuple(rates), tuple(gradients), tuple(weights))


def moments(found: Recording) -> tuple[Moment, ...]:
    """Adam's arithmetic at every step of a recording."""
    made, mean, square = list[Moment](), 0.0, 0.0
    for i, (rate, gradient, weight) in enumerate(
        zip(found.rates, found.gradients, found.weights, strict=True), start=1
    ):
        before = mean, square
        mean = found.beta1 * mean + (1 - found.beta1) * gradient
        square = found.beta2 * square + (1 - found.beta2) * gradient**2
        corrected = mean / (1 - found.beta1**i), square / (1 - found.beta2**i)
        update = -rate * corrected[0] / (math.sqrt(corrected[1]) + found.epsilon)
        decay = -rate * found.weight_decay * weight
        made.append(Moment(i, gradient, *before, mean, square, *corrected, rate, update, decay))
    return tuple(made)


PRESET = "tiny"
PARAMETER, PLACE = "encoder.layers.0.self_attention.v_proj.weight", (0, 0)


def told(found: Json) -> Study:
    """How Adam turns one weight's gradients into steps."""
    run = typed(Recording, json.loads(json.dumps(found)))  # what has just been measured has tuples
    steps = moments(run)
    middle = statistics.median_low(100 * abs(each.update) / each.rate for each in steps)
    row, column = (each + 1 for each in run.place)

    def chart(quantity: str, caption: str, lines: Mapping[str, Callable[[Moment], float]]) -> Chart:
        found = {name: [(each.step, of(each)) for each in steps] for name, of in lines.items()}
        return curves(caption, ("line", "step", quantity), found)

    return Study(
        topic="Training",
        question="How does Adam turn a weight's gradients into steps?",
        finding=f"A step of one weight is typically {middle:.0f} % of the learning rate: gradients that "
        "disagree in sign cancel in their running mean, and their usual size divides the rest.",
        parts=[
            f"One weight of the preset `tiny`, trained for {len(steps)} steps: row {row}, column {column} of "
            f"`{run.parameter}`. Its gradient jumps from batch to batch; $\\hat m$ is its running mean, "
            "$\\sqrt{\\hat v}$ its usual size. Their quotient, times the learning rate, is the step: small "
            "if gradients disagree in sign or have just become smaller, almost the whole rate if they agree.",
            r"$$m_t = \beta_1 m_{t-1} + (1-\beta_1)\, g_t, \qquad v_t = \beta_2 v_{t-1} + (1-\beta_2)\, "
            r"g_t^2$$",
            r"$$\hat m_t = \frac{m_t}{1-\beta_1^t}, \qquad \hat v_t = \frac{v_t}{1-\beta_2^t}, \qquad "
            r"\Delta w = -\,lrate \cdot \frac{\hat m_t}{\sqrt{\hat v_t} + \epsilon}$$",
            chart(
                "gradient",
                "The gradient and its running mean",
                {"gradient": lambda m: m.gradient, "mean": lambda m: m.mean_corrected},
            ),
            chart(
                "size",
                "Size of the gradient and its usual size",
                {"gradient": lambda m: abs(m.gradient), "usual": lambda m: m.size},
            ),
            chart(
                "step",
                "Adam's step beside the learning rate",
                {
                    "learning rate": lambda m: m.rate,
                    "− learning rate": lambda m: -m.rate,
                    "step": lambda m: m.update,
                },
            ),
            chart(
                "%",
                "Size of a step as a share of the learning rate",
                {"step / learning rate": lambda m: 100 * abs(m.update) / m.rate},
            ),
        ],
        method=f"{found['run']}; gradients after clipping; β₁ {run.beta1:g}, β₂ {run.beta2:g}, ε "
        f"{run.epsilon:g}, weight decay {run.weight_decay:g}.",
        sources="Kingma & Ba 2015, algorithm 1; Vaswani et al. 2017, section 5.3.",
    )


@measurement("assets/adam.json", studies={"adam": told})
def adam(data: Annotated[Pairs, "source<TAB>target lines"]) -> Json:
    """Trains the tiny preset and records what Adam does to one weight."""
    trainer = tiny_trainer(data)
    run = f"preset {PRESET}, {len(trainer.data):,} pairs, torch {torch.__version__}"
    return {"run": run} | asdict(record(trainer, PARAMETER, PLACE))


def tiny_trainer(data: Path) -> Trainer:
    """The preset's run on the pairs of a file, at its first step."""
    preset, pairs = PRESETS[PRESET], read_pairs(data)
    options, config = TrainingOptions(**preset.options), TransformerConfig(**preset.sizes)
    tokenizer = Tokenizer.train(both_sides(pairs), config.vocab_size)
    torch.manual_seed(options.seed)
    return Trainer(Transformer(config), encode_pairs(pairs, tokenizer), options)
