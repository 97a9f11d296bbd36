"""Positional encodings: one class each, one registry, one seam.

An encoding may act in three places; the base class acts in none of them:

* ``added(n)``: a table that is added to the scaled embeddings (section 3.5);
* ``rotate(x, first)``: a change of queries and keys before their product;
* ``bias()``: a rule for numbers that are added to the scores.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor, nn

from .config import TransformerConfig


class BiasRule(Protocol):
    """What is added to the scores, as a rule: its memory does not grow with queries × keys."""

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """(heads, queries, keys) bias for the given query and key positions, each a (n,) integer tensor."""


class PositionalEncoding(nn.Module):
    """No encoding at all: the base of every other one."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.max_positions = config.max_positions

    def added(self, length: int, first: int = 0) -> Tensor | None:
        """(length, d_model) table for positions ``first`` to ``first + length - 1``, or None.

        Raises:
            ValueError: The positions reach beyond ``max_positions``.
        """
        return None

    def rotate(self, x: Tensor, first: int = 0) -> Tensor:
        """Queries or keys (batch, heads, length, d_head), changed by their positions."""
        return x

    def bias(self) -> BiasRule | None:
        """The rule for the numbers added to the scores, or None."""
        return None

    def check(self, length: int, first: int = 0) -> None:
        """Raises ValueError where the positions reach beyond ``max_positions``."""
        if first + length > self.max_positions:
            raise ValueError(
                f"The sequence has {first + length:,} tokens; "
                f"this model has {self.max_positions:,} positions."
            )


class Sinusoidal(PositionalEncoding):
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos(…) (section 3.5)."""

    table: Tensor

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        table = sinusoidal_table(config.max_positions, config.d_model).float()
        self.register_buffer("table", table, persistent=False)

    def added(self, length: int, first: int = 0) -> Tensor:
        self.check(length, first)
        return self.table[first : first + length]


def sinusoidal_table(length: int, d_model: int, base: float = 10_000.0) -> Tensor:
    """The sinusoids of section 3.5, computed in float64.

    Args:
        length: Number of positions, from 0.
        d_model: Number of dimensions; even ones hold sines, odd ones cosines.
        base: Sets the longest wavelength, 2π · base tokens.

    Returns:
        (length, d_model) float64.
    """
    positions = torch.arange(length, dtype=torch.float64)[:, None]
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    angles = positions * torch.exp(-math.log(base) * even / d_model)
    table = torch.empty(length, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles[:, : d_model // 2])
    return table


REGISTRY: dict[str, type[PositionalEncoding]] = {"none": PositionalEncoding, "sinusoidal": Sinusoidal}


def make_positions(config: TransformerConfig) -> PositionalEncoding:
    """The encoding that the config names.

    Raises:
        ValueError: The name is not in the registry.
    """
    if config.positions not in REGISTRY:
        raise ValueError(
            f"positions is {config.positions!r}; known encodings are {', '.join(sorted(REGISTRY))}."
        )
    return REGISTRY[config.positions](config)
