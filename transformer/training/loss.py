"""Cross-entropy with label smoothing (section 5.4), without keeping the logits."""

from collections.abc import Callable
from contextlib import ExitStack
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from transformer.model import EncoderDecoder, EncoderModel, Network
from transformer.training.data import Batch, EncodedPairs
from transformer.training.distributed import ALONE, Workers

ROWS_AT_ONCE = {False: 512, True: 8192}
"""Rows of logits held at once, without CUDA and with CUDA."""
KERNELS = {False: [SDPBackend.MATH], True: [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]}
"""What computes attention under bfloat16, without CUDA and with CUDA; see `computing`."""


class _ProjectedLoss(torch.autograd.Function):
    """Computes the gradient together with the loss, some rows at a time.

    With p = softmax(z), z = h Wᵀ, ε the smoothing and V the vocabulary size, a row's loss is
    logsumexp(z) − (1 − ε) z_y − ε mean(z), and its gradient by z is p − (1 − ε) onehot(y) − ε/V.
    Two of these terms need no pass over the logits: mean(z) = h · mean(W), and logsumexp(z) = max z
    − log max p.
    """

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, labels: Tensor, smoothing: float
    ) -> Tensor:
        counted = labels >= 0
        features = features.masked_fill(~counted[:, None], 0.0)
        labels = labels.clamp(min=0)
        mean_weight = weight.float().mean(0)
        feature_grad = torch.empty_like(features)
        weight_grad = (
            torch.zeros_like(weight, dtype=torch.float32) if ctx.needs_input_grad[1] else None
        )
        loss = torch.zeros((), device=features.device)
        rows_at_once = ROWS_AT_ONCE[features.device.type == "cuda"]
        for start in range(0, features.shape[0], rows_at_once):
            rows = slice(start, start + rows_at_once)
            h = features[rows]
            y = labels[rows]
            count = counted[rows]
            z = h @ weight.t()  # (rows, vocabulary)
            gold = z.gather(1, y[:, None])[:, 0].float()
            top = z.amax(1).float()
            p = z.softmax(1)
            log_total = top - p.amax(1).float().log()
            losses = log_total - (1 - smoothing) * gold - smoothing * (h.float() @ mean_weight)
            loss += (losses * count).sum()
            row_grad = p @ weight - (1 - smoothing) * weight[y] - smoothing * mean_weight
            feature_grad[rows] = row_grad * count[:, None]
            if weight_grad is not None:
                if p.dtype == weight_grad.dtype:
                    weight_grad.addmm_(p.t(), h)
                else:
                    weight_grad += p.t() @ h
                weight_grad.index_add_(0, y, h.float(), alpha=smoothing - 1)
        if weight_grad is not None:
            weight_grad -= smoothing / weight.shape[0] * features.float().sum(0)
            weight_grad = weight_grad.to(weight.dtype)
        ctx.save_for_backward(feature_grad, weight_grad)
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        feature_grad, weight_grad = ctx.saved_tensors
        weight_grad = None if weight_grad is None else weight_grad * gradients[0]
        return feature_grad * gradients[0], weight_grad, None, None


def projected_loss(
    features: Tensor,  # decoder outputs (positions, d_model)
    weight: Tensor,  # output projection (vocabulary, d_model)
    labels: Tensor,  # ids to predict (positions,); below 0 where a position does not count
    # share of the target distribution spread over the vocabulary; the paper uses 0.1
    smoothing: float,
    bias: Tensor | None = None,  # bias of the projection (vocabulary,); None is zero
) -> Tensor:
    """Sum over positions of the smoothed cross-entropy of softmax(features Wᵀ + b), a float32
    scalar.

    The same value and gradient as `F.cross_entropy(features @ weight.T + bias, labels,
    label_smoothing=smoothing, reduction="sum")`, but only some rows of logits exist at a time, and
    little apart from the three matrix products runs at full size.
    """
    if bias is not None:  # a bias is a weight of a feature that is always 1
        features = torch.cat([features, torch.ones_like(features[:, :1])], dim=1)
        weight = torch.cat([weight, bias[:, None]], dim=1)
    with torch.autocast(features.device.type, enabled=False):
        apply: Callable[..., Tensor] = _ProjectedLoss.apply
        return apply(features, weight.to(features.dtype), labels, smoothing)


class SummedLoss(nn.Module):
    """The smoothed cross-entropy of a batch, summed over its target tokens: what processes
    share."""

    def __init__(self, model: Network, smoothing: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.model, self._dtype, self._smoothing = model, dtype, smoothing

    def forward(self, batch: Batch) -> Tensor:
        """The loss of a batch on the model's device, a scalar in nats."""
        with computing(batch.src_ids.device, self._dtype):
            features = features_of(self.model, batch).flatten(0, 1)
        labels = batch.tgt_ids.flatten()
        pad = self.model.config.pad_id
        if labels.device.type == "cpu":  # a GPU would have to wait until the positions are counted
            counted = labels != pad
            features = features[counted]
            labels = labels[counted]
        weight, bias = self.model.projection
        projected = features.to(self._dtype) * self.model.config.output_scale
        return projected_loss(
            projected, weight, labels.masked_fill(labels == pad, -1), self._smoothing, bias
        )


def features_of(model: Network, batch: Batch) -> Tensor:
    """(batch, target, d_model) what the output projection reads of a batch, before its scale."""
    if isinstance(model, EncoderDecoder):
        memory = model.encode(batch.src_ids, batch.src_padding)
        return model.decode(batch.tgt_input_ids, memory, batch.src_padding)
    assert isinstance(model, EncoderModel)
    return model.transformed(model.features(batch.src_ids))


@torch.no_grad()
def evaluate_loss(
    model: Network,  # the model; returned to its previous mode afterwards
    data: EncodedPairs,  # what to measure on
    batch_positions: int,  # see `TrainingOptions`
    dtype: torch.dtype = torch.float32,  # type of the matrix products
    # the processes that measure together, each with its share of the pairs
    workers: Workers = ALONE,
) -> float:
    """Cross-entropy per predicted token in nats, without smoothing or dropout; `</s>` counts as a
    token."""
    was_training = model.training
    model.eval()
    device = model.embedding.weight.device
    loss, tokens = 0.0, 0
    for batch in islice(data.in_order(batch_positions), workers.rank, None, workers.world):
        batch = batch.to(device)
        with computing(device, dtype):
            features = features_of(model, batch)
        counted = batch.tgt_ids != model.config.pad_id
        logits = model.projected(features[counted].float())
        loss += float(F.cross_entropy(logits, batch.tgt_ids[counted], reduction="sum"))
        tokens += batch.tokens
    model.train(was_training)
    loss, total = workers.sum(loss, tokens)
    return loss / max(1, total)


def computing(device: torch.device, dtype: torch.dtype) -> ExitStack:
    """Sets up the forward pass: autocast if products are bfloat16, and the attention kernels
    that suit.

    The rows of training are short. On a CPU, attention then runs as plain products: the
    backward pass of the
    fused kernel takes a quarter of such a step. On CUDA, FlashAttention's blocks of 128 would
    be nearly
    empty: it takes three times as long for 12 tokens as the memory-efficient kernel with its
        blocks of 64.
    cuDNN's makes a plan for each shape that it has not seen, which takes ten times as long as
    the step.
    """
    stack = ExitStack()
    if dtype == torch.bfloat16:
        stack.enter_context(torch.autocast(device.type, dtype=dtype))
        stack.enter_context(sdpa_kernel(KERNELS[device.type == "cuda"]))
    return stack
