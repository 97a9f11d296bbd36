"""Arithmetic of a training step, and the share of a device's speed that it reaches."""

from __future__ import annotations

import time

import torch

from transformer.model.config import TransformerConfig
from transformer.training.batches import Batch

PEAKS = {
    "H200": 989e12,
    "H100": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "L4": 121e12,
    "V100": 125e12,
    "T4": 65e12,
}
"""Dense 16-bit products per second of GPUs, in FLOP/s, by a part of their name (NVIDIA's data sheets)."""
SIZE = 512
TRIALS = 3


def step_flops(config: TransformerConfig, batch: Batch) -> float:
    """Floating-point operations of a step's matrix products, forward and backward.

    A product with a weight matrix of m × n entries costs 2·m·n per position, and the backward pass costs
    twice the forward pass. Padding counts, since it is computed; softmax, LayerNorm and the optimiser do not.
    """
    (rows, source), target = batch.src_ids.shape, batch.tgt_ids.shape[1]
    d, inner = config.d_model, config.d_ff
    encoder = rows * source * (4 * d * d + 2 * d * inner + 2 * source * d)
    own = rows * target * (4 * d * d + 2 * d * inner + 2 * target * d)
    cross = rows * (target * (2 * d * d + 2 * source * d) + source * 2 * d * d)
    predicted = int((batch.tgt_ids != config.pad_id).sum())
    forward = config.n_encoder_layers * encoder + config.n_decoder_layers * (own + cross)
    return 3 * 2.0 * (forward + predicted * d * config.vocab_size)


def peak(device: torch.device, dtype: torch.dtype) -> tuple[float, str]:
    """The speed that products can reach on a device.

    Returns:
        FLOP/s, and where the number comes from: a data sheet, or the best of three products of 512 × 512
        matrices made now with this process's threads.
    """
    if device.type == "cuda" and dtype == torch.bfloat16:
        name = torch.cuda.get_device_name(device)
        for part, flops in PEAKS.items():
            if part in name:
                return flops, f"peak of {name}"
    matrix = torch.full((SIZE, SIZE), 0.5, device=device, dtype=dtype)
    best = min(_seconds(matrix) for _ in range(TRIALS))
    return 2 * SIZE**3 / best, "a measured product"


def _seconds(matrix: torch.Tensor) -> float:
    started = time.perf_counter()
    product = matrix @ matrix
    if product.device.type == "cuda":
        torch.cuda.synchronize(product.device)
    return time.perf_counter() - started
