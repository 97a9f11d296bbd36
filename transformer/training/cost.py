"""Arithmetic of a training step, and the share of a device's speed that it reaches."""

from __future__ import annotations

import time

import torch

from transformer.config import ModelConfig
from transformer.training.data import AnyBatch

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


def step_flops(config: ModelConfig, batch: AnyBatch) -> float:
    """Floating-point operations of a step's matrix products, forward and backward.

    A product with a weight matrix of m × n entries costs 2·m·n per position, and the backward pass costs
    twice the forward pass. Padding counts, since it is computed; softmax, LayerNorm and the optimiser do not.
    """
    lengths, d, heads = batch.lengths, config.d_model, config.heads_width
    per_row = sum(lengths[side] * numbers for side, numbers in config.products.items())
    for site in config.sites.values():
        queries, keys = lengths[site.query_side], lengths[site.key_side]
        per_row += site.n_layers * 2 * heads * (queries * d + keys * d + queries * keys)
    return 3 * 2.0 * (batch.rows * per_row + batch.predicted * d * config.n_target_pieces)


def peak(device: torch.device, dtype: torch.dtype) -> tuple[float, str]:
    """The speed in FLOP/s that products can reach on a device, and where the number comes from.

    That is a data sheet, or the best of three products of 512 × 512 matrices made now with this process's
    threads.
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
