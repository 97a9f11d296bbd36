"""Training: schedules, steps, evaluation, and a state from which a run resumes exactly."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from transformer.model import Network
from transformer.text.pairs import SentencePair
from transformer.training.cost import step_flops
from transformer.training.data import AnyBatch, Data
from transformer.training.distributed import ALONE, Workers
from transformer.training.dropout import use_byte_dropout
from transformer.training.objective import SummedLoss, evaluate_loss, product_type
from transformer.training.options import TrainingOptions, learning_rate

AVERAGE_EVERY = 10
USED = "used"
"""Name of the tensor of a state that says how many batches were used."""


@dataclass(frozen=True)
class TrainingStep:
    """Measurements of one optimiser step."""

    step: int  # number of the step, from 1
    loss: float  # smoothed cross-entropy per target token, in nats
    learning_rate: float  # learning rate of this step
    gradient_norm: float  # norm of the gradient before clipping
    tokens: int  # number of target tokens of all processes, without padding
    seconds: float  # duration of this step
    flops: float = 0.0  # operations of the matrix products of all processes, see `cost.step_flops`
    # cross-entropy per token on the validation pairs, if this step measured it
    valid_loss: float | None = None
    valid_loss_average: float | None = None  # the same for the averaged weights
    # BLEU of the weights or of their average, whichever has the lower loss, if this step measured it
    bleu: float | None = None
    bleu_sentences: int | None = None  # on how many validation sentences
    exact: float | None = None  # share of these that greedy search writes exactly as their reference


@dataclass(frozen=True)
class TranslationQuality:
    """Quality of the translations of some sentences."""

    bleu: float  # their BLEU
    exact: float  # share of those that are their reference, letter for letter


class Quality(Protocol):
    """Measures of a model other than its loss, such as `runs.quality.GreedyBleu`."""

    @property
    def pairs(self) -> tuple[SentencePair, ...]:
        """The sentences that it is measured on."""

    def __call__(self, model: Network) -> TranslationQuality | None:
        """The measures of a model, which it leaves as it is; None if there are none."""


class Trainer:
    """Holds a model in training and everything that changes from step to step."""

    def __init__(
        self,
        model: Network,  # the model; trained in place, on its device
        data: Data,  # training pairs or texts
        options: TrainingOptions,  # settings of the run
        workers: Workers = ALONE,  # this process among those that train the model; all hold the same weights
        # by name of a weight, a factor on its learning rate; 0 leaves it as it is, and 1 is that of a weight
        # without a name
        rates: Mapping[str, float] = MappingProxyType({}),
        # makes what is made small of the model, the options and the type of the products
        summed: Callable[[Any, TrainingOptions, torch.dtype], nn.Module] = SummedLoss,
    ) -> None:
        self.model = model.train()
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(rates.get(name, 1.0) > 0)
        self.options = options
        self.data = data
        self.workers = workers
        self.step = self.used = 0  # steps done; batches that all processes have used
        self.device = model.embedding.weight.device
        self.dtype = product_type(options.precision)
        if self.device.type == "cpu":
            use_byte_dropout(model)
        self.optimizer = _optimizer(model, options, rates)
        weights = model.state_dict() if options.average_decay else {}
        self.average = {name: tensor.detach().clone() for name, tensor in weights.items()}
        self._loss = workers.share(summed(model, options, self.dtype))
        workers.part_random(options.seed)
        self._batches: Iterator[AnyBatch] | None = None

    def advance(self) -> TrainingStep:
        """Runs one optimiser step."""
        started = time.perf_counter()
        rate = learning_rate(self.options, self.step + 1, self.model.config.d_model)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["factor"]
        batches = [batch.to(self.device) for batch in self._next_batches()]
        config, world = self.model.config, self.workers.world
        counted = sum(batch.predicted for batch in batches)
        tokens, flops = self.workers.sum(counted, sum(step_flops(config, batch) for batch in batches))
        losses = [self._accumulate(batch, world / tokens, batch is batches[-1]) for batch in batches]
        (loss,) = self.workers.sum(sum(losses) / world)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip or math.inf)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        self._update_average()
        seconds = time.perf_counter() - started
        return TrainingStep(self.step, loss, rate, float(norm), int(tokens), seconds, flops)

    def _next_batches(self) -> list[AnyBatch]:
        """The batches of this process for the next step."""
        options, (rank, world) = self.options, (self.workers.rank, self.workers.world)
        if self._batches is None:
            self._batches = self.data.batches(options.batch_positions, options.seed, self.used + rank, world)
        self.used += options.accumulate * world
        return list(islice(self._batches, options.accumulate))

    def _accumulate(self, batch: AnyBatch, scale: float, last: bool) -> float:
        """Adds the gradients of a batch, times a scale; processes exchange them after the last one."""
        with nullcontext() if last else self.workers.local(self._loss):
            loss = self._loss(*batch.tensors) * scale
            self.workers.backward(loss)
        return float(loss.detach())

    @torch.no_grad()
    def _update_average(self) -> None:
        if not self.average or self.step % AVERAGE_EVERY:
            return
        updates = self.step // AVERAGE_EVERY
        decay = min(self.options.average_decay**AVERAGE_EVERY, updates / (updates + 9))
        weights = self.model.state_dict()
        torch._foreach_lerp_(list(self.average.values()), [weights[name] for name in self.average], 1 - decay)

    def evaluate(self, data: Data) -> tuple[float, float | None]:
        """Loss per token with the weights and, if there is one, with their average."""
        own = self._loss_on(data)
        if not self.average:
            return own, None
        with self._averaged():
            return own, self._loss_on(data)

    def measure(self, quality: Quality, averaged: bool) -> TranslationQuality | None:
        """Measures the weights, or their average, in process 0; a call for all processes."""
        with self._averaged() if averaged else nullcontext():
            return self.workers.agree(lambda: quality(self.model))

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Puts the averaged weights into the model for a while."""
        kept = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
        self.model.load_state_dict(self.average)
        try:
            yield
        finally:
            self.model.load_state_dict(kept)

    def _loss_on(self, data: Data) -> float:
        return evaluate_loss(self.model, data, self.options.batch_positions, self.dtype, self.workers)

    def state_tensors(self) -> dict[str, Tensor]:
        """Named tensors with all that a later run needs to resume exactly; a call for all processes."""
        tensors = {f"model/{name}": tensor for name, tensor in self.model.state_dict().items()}
        tensors |= {f"average/{name}": tensor for name, tensor in self.average.items()}
        for name, parameter in self.model.named_parameters():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer/{key}/{name}"] = value
        for rank, states in enumerate(self.workers.gather(self._random_states())):
            tensors |= {_random_name(name, rank): state for name, state in states.items()}
        tensors[USED] = torch.tensor(self.used)
        return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}

    def _random_states(self) -> dict[str, Tensor]:
        states = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            states["cuda"] = torch.cuda.get_rng_state(self.device)
        return states

    def load_state_tensors(self, tensors: dict[str, Tensor], step: int) -> None:
        """Resumes from `state_tensors`; KeyError if one is missing, RuntimeError if one does not fit."""
        self.model.load_state_dict(_under(tensors, "model/"))
        if self.average:
            kept = _under(tensors, "average/")
            self.average = {name: tensor.to(self.device) for name, tensor in kept.items()}
        self._load_optimizer(tensors)
        cpu, cuda = (tensors.get(_random_name(name, self.workers.rank)) for name in ("cpu", "cuda"))
        if cpu is not None:  # missing if fewer processes wrote the state
            torch.set_rng_state(cpu)
        if cuda is not None and self.device.type == "cuda":
            torch.cuda.set_rng_state(cuda, self.device)
        self.step = step
        self.used = int(tensors[USED]) if USED in tensors else step * self.options.accumulate
        self._batches = None

    def _load_optimizer(self, tensors: dict[str, Tensor]) -> None:
        state = self.optimizer.state_dict()
        names = {id(parameter): name for name, parameter in self.model.named_parameters()}
        order = [names[id(p)] for group in self.optimizer.param_groups for p in group["params"]]
        state["state"] = {
            index: {key: tensors[f"optimizer/{key}/{name}"] for key in ("step", "exp_avg", "exp_avg_sq")}
            for index, name in enumerate(order)
            if f"optimizer/step/{name}" in tensors
        }
        self.optimizer.load_state_dict(state)


def train(
    trainer: Trainer,  # The trainer; changed in place. It may be saved between any two steps.
    valid: Data | None = None,  # pairs to evaluate on; None skips evaluation
    quality: Quality | None = None,  # what to measure at each evaluation besides the loss; None for nothing
) -> Iterator[TrainingStep]:
    """Runs and yields the remaining steps, and evaluates at the chosen interval."""
    options = trainer.options
    while trainer.step < options.steps:
        done = trainer.advance()
        if valid is not None and (done.step % options.evaluate_every == 0 or done.step == options.steps):
            done = _evaluated(trainer, done, valid, quality)
        yield done


def _evaluated(trainer: Trainer, done: TrainingStep, valid: Data, quality: Quality | None) -> TrainingStep:
    own, averaged = trainer.evaluate(valid)
    done = replace(done, valid_loss=own, valid_loss_average=averaged)
    if quality is None:
        return done
    found = trainer.measure(quality, averaged is not None and averaged < own)
    if found is None:
        return done
    return replace(done, bleu=found.bleu, exact=found.exact, bleu_sentences=len(quality.pairs))


def _random_name(device: str, rank: int) -> str:
    return f"random/{device}/{rank}" if rank else f"random/{device}"


def _optimizer(model: Network, options: TrainingOptions, rates: Mapping[str, float]) -> torch.optim.AdamW:
    """AdamW over the weights that learn, in groups of one factor; vectors do not decay."""
    trained = {name: each for name, each in model.named_parameters() if each.requires_grad}
    groups = [
        {
            "params": [
                each
                for name, each in trained.items()
                if (each.dim() > 1) == matrix and rates.get(name, 1.0) == factor
            ],
            "weight_decay": options.weight_decay if matrix else 0.0,
            "factor": factor,
        }
        for factor in sorted({rates.get(name, 1.0) for name in trained}, reverse=True)
        for matrix in (True, False)
    ]
    betas = (options.beta1, options.beta2)
    return torch.optim.AdamW(groups, lr=options.learning_rate, betas=betas, eps=options.epsilon, fused=True)


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
