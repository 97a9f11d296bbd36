"""The loss of training: the sum over a batch, and the mean over data."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import islice

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from transformer.model import Network
from transformer.training.data import Data
from transformer.training.distributed import ALONE, Workers
from transformer.training.loss import projected_loss
from transformer.training.options import Precision, TrainingOptions

KERNELS = {
    False: [SDPBackend.MATH],
    True: [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH],
}
"""What computes attention under bfloat16, without CUDA and with CUDA; see `computing`."""


class SummedLoss(nn.Module):
    """The smoothed cross-entropy of a batch, summed over its target tokens: what processes share."""

    def __init__(self, model: Network, options: TrainingOptions, dtype: torch.dtype) -> None:
        super().__init__()
        self.model, self._dtype, self._smoothing = model, dtype, options.label_smoothing
        self._features = torch.compile(model.features, dynamic=True) if options.compile else model.features

    def forward(self, *tensors: Tensor) -> Tensor:
        """The loss of what the model reads, and (the last tensor) what it should predict."""
        *read, wanted = tensors
        with computing(wanted.device, self._dtype):
            features = self._features(*read)
        counted = wanted != self.model.config.pad_id
        weight, bias = self.model.projection
        projected = features[counted].to(self._dtype) * self.model.config.output_scale
        return projected_loss(projected, weight, wanted[counted], self._smoothing, bias)


@torch.no_grad()
def evaluate_loss(
    model: Network,  # the model; returned to its previous mode afterwards
    data: Data,  # what to measure on
    batch_positions: int,  # see `TrainingOptions`
    dtype: torch.dtype = torch.float32,  # type of the matrix products
    workers: Workers = ALONE,  # the processes that measure together, each with its share of the pairs
) -> float:
    """Cross-entropy per predicted token in nats, without smoothing or dropout; `</s>` counts as a token."""
    was_training = model.training
    model.eval()
    device = model.embedding.weight.device
    loss, tokens = 0.0, 0
    own = islice(data.in_order(batch_positions), workers.rank, None, workers.world)
    for batch in (batch.to(device) for batch in own):
        with computing(device, dtype):
            features = model.features(*batch.read)
        counted = batch.wanted != model.config.pad_id
        logits = model.logits(features[counted].float())
        loss += float(F.cross_entropy(logits, batch.wanted[counted], reduction="sum"))
        tokens += int(counted.sum())
    model.train(was_training)
    loss, counted_tokens = workers.sum(loss, tokens)
    return loss / max(1, counted_tokens)


def product_type(precision: Precision) -> torch.dtype:
    return torch.bfloat16 if precision == "bfloat16" else torch.float32


def computing(device: torch.device, dtype: torch.dtype) -> ExitStack:
    """Sets up the forward pass: autocast if products are bfloat16, and the attention kernels that suit.

    On a CPU, attention then runs as plain products: for the short rows of training, the backward pass of the
    fused kernel takes a quarter of such a step. On CUDA, cuDNN's kernel is left out: it makes a plan for each
    shape it has not seen, which takes ten times as long as the step, and batches have hundreds of shapes
    (`benchmarks/training.py` compares them).
    """
    stack = ExitStack()
    if dtype == torch.bfloat16:
        stack.enter_context(torch.autocast(device.type, dtype=dtype))
        stack.enter_context(sdpa_kernel(KERNELS[device.type == "cuda"]))
    return stack
