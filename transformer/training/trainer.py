"""Training: steps, evaluation, and a state from which a run resumes exactly."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Required

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from transformer.layers import Layer
from transformer.model import EncoderDecoder, Network
from transformer.training.data import Batch, EncodedPairs
from transformer.training.distributed import ALONE, Workers
from transformer.training.loss import SummedLoss, evaluate_loss
from transformer.training.options import TrainingOptions, learning_rate
from transformer.training.quality import GreedyBleu, Quality

AVERAGE_EVERY = 10
USED = "used"
"""Name of the tensor of a state that says how many batches were used."""
MOST_GRAPHS = 100
"""Most shapes of batches whose step is recorded."""
BYTE_LEVELS = 256
MOMENTS = ("step", "exp_avg", "exp_avg_sq")
"""What AdamW keeps of a weight."""


@dataclass(frozen=True)
class TrainingStep:
    """Measurements of one optimiser step."""

    step: int  # number of the step, from 1
    loss: float  # smoothed cross-entropy per target token, in nats
    learning_rate: float  # learning rate of this step
    gradient_norm: float  # norm of the gradient before clipping
    tokens: int  # number of target tokens of all processes, without padding
    seconds: float  # duration of this step
    flops: float = 0.0  # operations of the matrix products of all processes, see `Cost`
    # cross-entropy per token on the validation pairs, if this step measured it
    valid_loss: float | None = None
    valid_loss_average: float | None = None  # the same for the averaged weights
    # BLEU of the weights or of their average, whichever has the lower loss, if this step measured
    # it
    bleu: float | None = None
    bleu_sentences: int | None = None  # on how many validation sentences
    exact: float | None = (
        None  # share of these that greedy search writes exactly as their reference
    )


class Evaluation(Quality, total=False):
    """What an evaluation measures, as fields of a `TrainingStep`."""

    valid_loss: Required[float]
    valid_loss_average: float


class Cost:
    """Floating-point operations of a step's products with matrices, forward and backward.

    A matrix of m × n entries costs 2·m·n per position, and the backward pass costs twice the
    forward pass. Padding counts, since it is computed; queries times keys, below a hundredth for
    sentences, do not.
    """

    def __init__(self, model: Network) -> None:
        numbers = {
            name: sum(parameter.numel() for parameter in module.parameters() if parameter.dim() > 1)
            for name, module in model.named_modules()
            if isinstance(module, nn.Linear | nn.RNNBase) and module is not model.output
        }
        self._source = sum(count for name, count in numbers.items() if name.startswith("encoder."))
        self._target = sum(numbers.values()) - self._source
        self._token = model.projection[0].numel()

    def __call__(self, batch: Batch) -> float:
        """Of a batch."""
        rows, source, target = batch.shape
        return 6.0 * (
            rows * (source * self._source + target * self._target) + batch.tokens * self._token
        )


class ByteDropout(nn.Module):
    """Dropout that draws its mask from random bytes: four times as fast on a CPU, where drawing is
    the cost.

    It zeroes each number with a probability rounded to 1/256 and scales up the rest to match. One
    64-bit draw of torch's generator gives eight mask entries; a saved generator state repeats them.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.threshold = round(probability * BYTE_LEVELS)

    def forward(self, x: Tensor) -> Tensor:
        """Takes any shape; returns it unchanged in evaluation mode."""
        if not self.training or self.threshold == 0:
            return x
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        keeps = words.view(torch.uint8)[: x.numel()].view(x.shape) >= self.threshold
        return x * keeps.to(x.dtype).mul_(BYTE_LEVELS / (BYTE_LEVELS - self.threshold))


class Trainer:
    """Holds a model in training and everything that changes from step to step.

    On a GPU, batches have few shapes, and the forward and backward pass of each shape is recorded
    once as a CUDA graph and replayed: launching its kernels one by one takes longer than they do.
    """

    def __init__(
        self,
        model: Network,  # the model; trained in place, on its device
        data: EncodedPairs,  # training pairs
        options: TrainingOptions,  # settings of the run
        # this process among those that train the model; all hold the same weights
        workers: Workers = ALONE,
    ) -> None:
        self.model = model.train()
        self.data = data
        self.options = options
        self.workers = workers
        self.step = self.used = 0  # steps done; batches that all processes have used
        self.device = model.embedding.weight.device
        self.on_gpu = self.device.type == "cuda"
        self.dtype = torch.bfloat16 if options.precision == "bfloat16" else torch.float32
        if not self.on_gpu:
            for parent in list(model.modules()):
                for name, child in list(parent.named_children()):
                    if type(child) is nn.Dropout:
                        setattr(parent, name, ByteDropout(child.p))
        elif options.compile:
            for layer in (module for module in model.modules() if isinstance(module, Layer)):
                layer.compile(dynamic=True)
        matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
        vectors = [parameter for parameter in model.parameters() if parameter.dim() <= 1]
        groups: list[dict[str, Any]] = [
            {"params": matrices},
            {"params": vectors, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(
            groups,
            lr=options.learning_rate,
            betas=(options.beta1, options.beta2),
            eps=options.epsilon,
            weight_decay=options.weight_decay,
            fused=True,
        )
        weights = model.state_dict() if options.average_decay else {}
        self.average = {name: tensor.detach().clone() for name, tensor in weights.items()}
        self._loss = workers.share(SummedLoss(model, options.label_smoothing, self.dtype))
        self._cost = Cost(model)
        self._graphs: dict[tuple[int, int, int], _Recorded | None] = {}
        self._stream: torch.cuda.Stream | None = None
        if self.on_gpu:
            self._stream = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        if not workers.first:  # each process draws its own dropout
            torch.manual_seed(options.seed + 1_000_003 * workers.rank)
        self._batches: Iterator[Batch] | None = None
        self._next: list[Batch] = []  # of the next step, made while the GPU computes this one

    def advance(self) -> TrainingStep:
        """Runs one optimiser step: forward and backward, clip, step, average."""
        started = time.perf_counter()
        options = self.options
        world = self.workers.world
        rate = learning_rate(options, self.step + 1, self.model.config.d_model)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            batches = [batch.to(self.device) for batch in self._next or self._draw()]
            self.used += options.accumulate * world
            counts = sum(batch.tokens for batch in batches), sum(map(self._cost, batches))
            tokens, flops = counts if world == 1 else self.workers.sum(*counts)
            loss = torch.zeros((), device=self.device)
            for batch in batches:
                loss += self._accumulate(batch, world / tokens, batch is batches[-1])
            norm = nn.utils.clip_grad_norm_(self.model.parameters(), options.clip or math.inf)
            self.optimizer.step()
            self.optimizer.zero_grad(
                set_to_none=not self.on_gpu
            )  # a graph adds to gradients at one place
            self.step += 1
            if self.average and self.step % AVERAGE_EVERY == 0:
                updates = self.step // AVERAGE_EVERY
                decay = min(options.average_decay**AVERAGE_EVERY, updates / (updates + 9))
                average = self.average
                weights = self.model.state_dict()
                torch._foreach_lerp_(
                    [*average.values()], [weights[name] for name in average], 1 - decay
                )
            self._next = self._draw()
            mean, length = torch.stack(
                [loss / world, norm]
            ).tolist()  # a GPU has computed all by here
        if world > 1:
            (mean,) = self.workers.sum(mean)
        return TrainingStep(
            step=self.step,
            loss=mean,
            learning_rate=rate,
            gradient_norm=length,
            tokens=int(tokens),
            seconds=time.perf_counter() - started,
            flops=flops,
        )

    def _draw(self) -> list[Batch]:
        """The batches of this process for the step after those of ``used``."""
        options = self.options
        if self._batches is None:
            self._batches = self.data.batches(
                options.batch_positions,
                options.seed,
                self.used + self.workers.rank,
                self.workers.world,
                few_shapes=self.on_gpu,
            )
        return list(islice(self._batches, options.accumulate))

    def _accumulate(self, batch: Batch, scale: float, last: bool) -> Tensor:
        """Adds the gradients of a batch, times a scale; processes exchange them after the last
        one."""
        if self.on_gpu and self.workers.world == 1:
            recorded = self._graphs.get(batch.shape)
            if (
                recorded is None
                and batch.shape in self._graphs
                and len(self._graphs) <= MOST_GRAPHS
            ):
                recorded = _Recorded(self, batch)
            self._graphs[batch.shape] = recorded
            if recorded is not None:
                return recorded(batch, scale)
        summed = self._loss
        with (
            summed.no_sync()
            if isinstance(summed, DistributedDataParallel) and not last
            else nullcontext()
        ):
            loss: Tensor = summed(batch) * scale
            torch.autograd.backward(loss)
        return loss.detach()

    def evaluate(self, data: EncodedPairs, quality: GreedyBleu | None = None) -> Evaluation:
        """What is measured now; a call for all processes, of which 0 translates."""

        def loss() -> float:
            positions = self.options.batch_positions
            return evaluate_loss(self.model, data, positions, self.dtype, self.workers)

        measured: Evaluation = {"valid_loss": loss()}
        if self.average:
            with self._averaged():
                measured["valid_loss_average"] = loss()
        if quality and quality.pairs:
            better = measured.get("valid_loss_average", math.inf) < measured["valid_loss"]
            model = self.model
            assert isinstance(model, EncoderDecoder)
            with self._averaged() if better else nullcontext():
                return {**measured, **self.workers.agree(lambda: quality(model))}
        return measured

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Puts the averaged weights into the model for a while."""
        state = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
        self.model.load_state_dict(self.average)
        try:
            yield
        finally:
            self.model.load_state_dict(state)

    def state_tensors(self) -> dict[str, Tensor]:
        """Named tensors with all that a later run needs to resume exactly; a call for all
        processes."""
        tensors = {f"model/{name}": tensor for name, tensor in self.model.state_dict().items()}
        tensors |= {f"average/{name}": tensor for name, tensor in self.average.items()}
        for name, parameter in self.model.named_parameters():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer/{key}/{name}"] = value
        random = {"cpu": torch.get_rng_state()}
        if self.on_gpu:
            random["cuda"] = torch.cuda.get_rng_state(self.device)
        for rank, states in enumerate(self.workers.gather(lambda: random)):
            tensors |= {_random(name, rank): state for name, state in states.items()}
        tensors[USED] = torch.tensor(self.used)
        return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}

    def load_state_tensors(self, tensors: dict[str, Tensor], step: int) -> None:
        """Resumes from `state_tensors`; KeyError if one is missing, RuntimeError if one does not
        fit."""
        model, average = (
            {
                name.removeprefix(prefix): tensor
                for name, tensor in tensors.items()
                if name.startswith(prefix)
            }
            for prefix in ("model/", "average/")
        )
        self.model.load_state_dict(model)
        if self.average:
            self.average = {name: tensor.to(self.device) for name, tensor in average.items()}
        for name, parameter in self.model.named_parameters():
            if f"optimizer/step/{name}" in tensors:
                self.optimizer.state[parameter] = {
                    key: tensors[f"optimizer/{key}/{name}"].to(self.device) for key in MOMENTS
                }
        cpu, cuda = (tensors.get(_random(name, self.workers.rank)) for name in ("cpu", "cuda"))
        if cpu is not None:  # missing if fewer processes wrote the state
            torch.set_rng_state(cpu)
        if cuda is not None and self.on_gpu:
            torch.cuda.set_rng_state(cuda, self.device)
        self.step = step
        self.used = int(tensors[USED])
        self._batches = None
        self._next = []


def _random(name: str, rank: int) -> str:
    """The name of a random state of a process among the tensors of a run."""
    if rank == 0:
        return f"random/{name}"
    return f"random/{name}/{rank}"


class _Recorded:
    """The forward and backward pass of one shape of batch as a CUDA graph, which reads at fixed
    addresses."""

    def __init__(self, trainer: Trainer, batch: Batch) -> None:
        self._batch = batch.to(trainer.device, copy=True)
        self._scale = torch.zeros((), device=trainer.device)
        self._graph = torch.cuda.CUDAGraph()
        recorded = (graph for graph in trainer._graphs.values() if graph is not None)
        pool = next((graph._graph.pool() for graph in recorded), None)
        with torch.cuda.graph(self._graph, pool, trainer._stream):
            self._loss: Tensor = trainer._loss(self._batch) * self._scale
            torch.autograd.backward(self._loss)

    def __call__(self, batch: Batch, scale: float) -> Tensor:
        """Adds the gradients of a batch of this shape, and returns its loss."""
        for name in ("src_ids", "tgt_input_ids", "tgt_ids", "src_padding"):
            getattr(self._batch, name).copy_(getattr(batch, name))
        self._scale.fill_(scale)
        self._graph.replay()
        return self._loss.detach()


def train(
    trainer: Trainer,  # The trainer; changed in place. It may be saved between any two steps.
    valid: EncodedPairs | None = None,  # pairs to evaluate on; None skips evaluation
    quality: GreedyBleu | None = None,  # what to measure at each evaluation besides the loss
) -> Iterator[TrainingStep]:
    """Runs and yields the remaining steps, and evaluates at the chosen interval."""
    options = trainer.options
    while trainer.step < options.steps:
        with trainer.workers.together():
            done = trainer.advance()
        if valid is not None and (
            done.step % options.evaluate_every == 0 or done.step == options.steps
        ):
            done = replace(done, **trainer.evaluate(valid, quality))
        yield done
