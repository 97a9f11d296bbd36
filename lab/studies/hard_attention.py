"""`python -m lab hard-attention`: soft attention mixes all positions, hard attention draws one.

Hard attention learns by REINFORCE (Williams 1992), as in Xu et al. (2015, section 4.1): what it draws has no
gradient, so the log-probability of a draw is pushed up if the token behind it became likelier than usual, and
down if not. The estimate is right on average, and noisy. A model differs from its twin in nothing else.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from lab.measurement import Json, measurement, one_thread, report
from lab.study import Chart, Study, curves
from transformer.model.config import RecurrentConfig
from transformer.model.recurrent import Recurrent
from transformer.model.scores import attention_weights
from transformer.model.watching.observer import UNWATCHED, Attended, AttentionInputs, Bystander
from transformer.runs.bootstrap import rounded
from transformer.text.vocabulary import BOS_ID, EOS_ID, PAD_ID
from transformer.training.data import pad
from transformer.training.toys.tasks import LETTERS, TOYS

Method = Literal["soft", "hard"]
FIRST_LETTER = 4
WIDTH, BATCH, LONGEST = 32, 64, 8
RATE, KEPT = 3e-3, 0.9
"""Learning rate of Adam, and the share that the running mean of the rewards keeps at each step."""
HELD_OUT, ESTIMATES = 256, 16


@dataclass(frozen=True)
class Texts:
    """Sequences of a toy task."""

    source: Tensor  # (batch, source) ids, ending in ``</s>``
    read: Tensor  # (batch, target) ids that the decoder reads
    wanted: Tensor  # (batch, target) ids that it should predict; padding where nothing is

    @property
    def counted(self) -> Tensor:
        """(batch, target) bool: True where a token is wanted."""
        return self.wanted != PAD_ID


def texts(task: str, chance: random.Random, count: int = BATCH, longest: int = LONGEST) -> Texts:
    """Freshly drawn sequences of a task that spells letters."""
    pairs = [TOYS[task].draw(chance, longest) for _ in range(count)]
    source, target = [_ids(pair.source) for pair in pairs], [_ids(pair.target) for pair in pairs]
    ended, started = [[*row, EOS_ID] for row in target], [[BOS_ID, *row] for row in target]
    return Texts(pad([[*row, EOS_ID] for row in source], PAD_ID), pad(started, PAD_ID), pad(ended, PAD_ID))


def _ids(text: str) -> list[int]:
    return [FIRST_LETTER + LETTERS.index(letter) for letter in text.split()]


def small_model(seed: int) -> Recurrent:
    """An untrained recurrent model with additive scores; the same for the same seed."""
    torch.manual_seed(seed)
    size = FIRST_LETTER + len(LETTERS)
    return Recurrent(RecurrentConfig(vocab_size=size, d_model=WIDTH, dropout=0.0, score="additive"))


class Choosing(Bystander):
    """Hard attention: each query reads the memory at one position alone."""

    log_probs: Tensor  # (batch, queries) log-probability of each drawn position, of the last pass

    def __init__(
        self,
        # draws the position from the weights; None for the position with the largest weight
        chance: torch.Generator | None = None,
    ) -> None:
        self._chance = chance

    def attention(self, asked: AttentionInputs) -> Attended:
        weights = attention_weights(asked.scores(), asked.visible(), asked.focus)[:, 0]
        rows = weights.detach().flatten(0, 1)
        drawn = rows.argmax(-1)
        if self._chance is not None:
            drawn = torch.multinomial(rows, 1, generator=self._chance)[:, 0]
        at = drawn.view(weights.shape[:2])[..., None]  # (batch, queries, 1)
        self.log_probs = weights.gather(-1, at)[..., 0].clamp(min=1e-30).log()
        value = asked.value[:, 0]
        return Attended(value.gather(1, at.expand(-1, -1, value.shape[-1]))[:, None])


def token_losses(model: Recurrent, given: Texts, observer: Bystander = UNWATCHED) -> Tensor:
    """(batch, target) negative log-probabilities in nats; 0 where nothing is wanted."""
    logits = model.logits(model.features(given.source, given.read, observer))
    losses = F.cross_entropy(logits.transpose(1, 2), given.wanted, reduction="none")
    return losses * given.counted


def soft_loss(model: Recurrent, given: Texts) -> Tensor:
    """The mean loss of a token, whose gradient is exact."""
    return token_losses(model, given).sum() / given.counted.sum()


def reinforced(model: Recurrent, given: Texts, chance: torch.Generator, usual: float) -> tuple[Tensor, float]:
    """Objective of hard attention, to differentiate, and the mean reward, compared with the usual one.

    The reward of a draw is the log-probability of its own token: without input feeding, a draw changes no
    other token. The gradient of the result estimates that of the expected loss.
    """
    observer = Choosing(chance)
    losses = token_losses(model, given, observer)
    better = (-losses.detach() - usual) * given.counted
    count = given.counted.sum()
    surrogate = (losses - better * observer.log_probs).sum() / count
    return surrogate, float(-losses.detach().sum() / count)


class Learner:
    """A small model that learns a toy task with soft or with hard attention."""

    def __init__(self, method: Method, task: str, seed: int) -> None:
        """Seeds the weights, the sequences and the draws; the task is one of ``TOYS`` that spells letters."""
        self.method, self._task = method, task
        self.model = small_model(seed)
        self._optimizer = torch.optim.Adam(self.model.parameters(), RATE)
        self._batches = random.Random(f"{task}/{seed}")
        self._chance = torch.Generator().manual_seed(seed)
        self._held = texts(task, random.Random(f"{task}/held out"), HELD_OUT)
        self._usual: float | None = None

    def learn(self, steps: int, every: int) -> dict[str, list[float]]:
        """Trains, and measures before the first step and after every few steps: a list of each quantity."""
        measured = []
        for step in range(steps + 1):
            if step % every == 0 or step == steps:
                measured.append(self._measured(step))
            if step < steps:
                self._optimizer.zero_grad()
                torch.autograd.backward(self._objective(texts(self._task, self._batches)))
                self._optimizer.step()
        return {name: [each[name] for each in measured] for name in measured[0]}

    def _objective(self, given: Texts) -> Tensor:
        if self.method == "soft":
            return soft_loss(self.model, given)
        surrogate, reward = reinforced(self.model, given, self._chance, self._usual or 0.0)
        before = reward if self._usual is None else self._usual
        self._usual = KEPT * before + (1 - KEPT) * reward
        return surrogate

    @torch.no_grad()
    def _quality(self) -> dict[str, float]:
        """Mean loss of a held-out token in nats, and share of exact sequences: forced and greedy agree there.

        Hard attention reads the position of largest weight.
        """
        observer = UNWATCHED if self.method == "soft" else Choosing()
        given = self._held
        logits = self.model.logits(self.model.features(given.source, given.read, observer))
        right = (logits.argmax(-1) == given.wanted) | ~given.counted
        loss = token_losses(self.model, given, observer).sum() / given.counted.sum()
        return {"loss": float(loss), "exact": float(right.all(-1).float().mean())}

    def _measured(self, step: int) -> dict[str, float]:
        """The quality, and the variance of the estimated gradient over fresh batches.

        ``without`` is that without the baseline; ``drawn`` is what is left if the batch stays the same.
        """
        fresh = [texts(self._task, random.Random(f"{self._task}/{step}/{i}")) for i in range(ESTIMATES)]
        chance, usual = torch.Generator().manual_seed(step), self._usual or 0.0

        def spread(batches: Sequence[Texts], baseline: float) -> float:
            if self.method == "soft":
                return variance(gradient(self.model, soft_loss(self.model, each)) for each in batches)
            losses = (reinforced(self.model, each, chance, baseline)[0] for each in batches)
            return variance(gradient(self.model, loss) for loss in losses)

        found = {"steps": step} | self._quality() | {"variance": spread(fresh, usual)}
        if self.method == "hard":
            found["without"] = spread(fresh, 0.0)
        return found | {"drawn": spread(fresh[:1] * ESTIMATES, usual)}


def gradient(model: Recurrent, objective: Tensor) -> Tensor:
    """(parameters,) the gradient by all parameters."""
    found = torch.autograd.grad(objective, list(model.parameters()))
    return torch.cat([each.flatten() for each in found])


def variance(gradients: Iterator[Tensor]) -> float:
    """The variances of all numbers of some gradients, added up."""
    return float(torch.stack(list(gradients)).var(0).sum())


def told(found: Json) -> Study:
    """Cost of hard attention on the toy task: steps, exactness and variance."""
    steps, methods = found["methods"]["soft"]["steps"], found["methods"]
    exact = {name: _spans(runs["exact"], 100) for name, runs in methods.items()}
    spread = {name: _spans(runs["variance"]) for name, runs in methods.items()}
    spread["hard, without the baseline"] = _spans(methods["hard"]["without"])
    times = [hard[0] / soft[0] for soft, hard in zip(spread["soft"], spread["hard"], strict=True)]
    saved = [with_[0] / bare[0] for with_, bare in zip(*list(spread.values())[1:], strict=True)]
    most, end = saved.index(min(saved)), {name: spans[-1] for name, spans in exact.items()}
    early = len(steps) // 5
    typical = statistics.median_low(times[1:])
    helps = sum(share < 1 for share in saved)
    return Study(
        topic="Recurrent networks",
        question="What does it cost to look at one place only?",
        finding=f"Hard attention learns the same task more slowly (step {steps[early]:,}: "
        f"{exact['hard'][early][0]:.0f} % of the sequences, soft attention {exact['soft'][early][0]:.0f} %), "
        f"and the variance of its gradient is typically {typical:.0f} times as large.",
        parts=[
            "Soft attention reads a mixture of all positions, and its gradient is exact. Hard attention "
            "draws one position, so nothing can be differentiated through the draw: REINFORCE makes a "
            "draw more likely if it did better than a baseline, here the running mean of rewards. That is "
            "right on average, and noisy.",
            r"$$\frac{\partial L}{\partial W} \approx \sum_t "
            r"\frac{\partial \log p(y_t \mid s_t)}{\partial W} "
            r"+ \left(\log p(y_t \mid s_t) - b\right) \frac{\partial \log \alpha_t(s_t)}{\partial W}, "
            r"\qquad s_t \sim \alpha_t$$",
            f"After {steps[-1]:,} steps, soft attention gives back {end['soft'][0]:.1f} % of the sequences "
            f"({end['soft'][1]:.1f} to {end['soft'][2]:.1f} over the seeds), hard attention "
            f"{end['hard'][0]:.1f} % ({end['hard'][1]:.1f} to {end['hard'][2]:.1f}).",
            _chart("exact, %", "Sequences given back without a mistake", steps, exact),
            _chart("variance", "Variance of the gradient, summed over all parameters", steps, spread, "y"),
            f"The baseline helps most at step {steps[most]:,}, where it takes the variance from "
            f"{spread['hard, without the baseline'][most][0]:.2f} to {spread['hard'][most][0]:.2f}. Once the "
            "model is mostly right, most rewards are near 0, and little is left to take away: in all, it "
            f"lowers the variance at {helps} of {len(saved)} measured steps. Each variance is that of a few "
            "batches, so single points jump.",
            curves(
                "Variance of hard attention over that of soft attention, and over that without a baseline",
                ("ratio", "steps", "times"),
                {
                    "hard / soft": zip(steps, times, strict=True),
                    "with / without baseline": zip(steps, saved, strict=True),
                },
                "y",
            ),
        ],
        method=f"A GRU of {found['d_model']} numbers with additive scores, which {TOYS[found['task']].about} "
        f"(2 to {found['longest']} letters), {found['seeds']} seeds of each: the line is their mean, the "
        f"bars their span. Exactness on {found['held_out']} fresh sequences, where hard attention reads the "
        f"position of largest weight; variance over {found['estimates']} fresh batches of {found['batch']}.",
        sources="Xu et al. 2015, section 4.1; Williams 1992.",
    )


def _spans(runs: Sequence[Sequence[float]], factor: float = 1.0) -> list[tuple[float, float, float]]:
    """Mean, lowest and highest of the seeds at each measured step."""
    return [
        (factor * statistics.fmean(each), factor * min(each), factor * max(each))
        for each in zip(*runs, strict=True)
    ]


def _chart(
    title: str,
    caption: str,
    steps: Sequence[int],
    found: Mapping[str, Sequence[tuple[float, float, float]]],
    log: Literal["", "y"] = "",
) -> Chart:
    points = {
        name: [(step, *each) for step, each in zip(steps, spans, strict=True)]
        for name, spans in found.items()
    }
    return curves(caption, ("attention", "steps", title, "low", "high"), points, log)


@measurement("assets/models/recurrent/hard_attention.json", studies={"hard-attention": told})
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
