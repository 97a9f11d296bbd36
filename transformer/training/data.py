"""Interface of a trainer's data: batches of tensors, of which the last holds the tokens to predict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, Self

import torch
from torch import Tensor

from transformer.config import Side


class AnyBatch(Protocol):
    """Rows of tokens, ready for the model."""

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors of the batch: what the model reads, and ``wanted``."""

    @property
    def read(self) -> tuple[Tensor, ...]:
        """Input of the model's ``features``."""

    @property
    def wanted(self) -> Tensor:
        """(rows, length) ids to predict; padding has the padding's id."""

    @property
    def rows(self) -> int:
        """Number of rows."""

    @property
    def lengths(self) -> Mapping[Side, int]:
        """Length of a row on each side, with padding."""

    @property
    def predicted(self) -> int:
        """Number of ids to predict, without padding."""

    def to(self, device: torch.device) -> Self:
        """The same batch on another device."""


class Data(Protocol):
    """Training or validation data."""

    def __len__(self) -> int: ...

    @property
    def longest(self) -> int:
        """Length of the longest sequence, in tokens."""

    @property
    def items(self) -> str:
        """Unit of its count: "pairs", "texts"."""

    def batches(
        self,
        max_positions: int,  # largest number of positions of a batch, with padding
        seed: int,  # seed of the order
        skip: int,  # number of batches that are left out first: an earlier run or another process has them
        every: int,  # 1 yields each of the following batches, N the first of every N
    ) -> Iterator[AnyBatch]:
        """Yields batches without end, epoch after epoch."""

    def in_order(self, max_positions: int) -> Iterator[AnyBatch]:
        """Yields everything once."""

    def numbers(self) -> Iterable[bytes]:
        """All that decides what a run learns, for its fingerprint."""


def pad(rows: Sequence[Sequence[int]], fill: int) -> Tensor:
    """Pads rows of numbers to the longest row (rows, longest)."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], dtype=torch.long)
