"""Keys and values that one decoding request keeps, so that each step computes only one row."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

KeyValue = tuple[Tensor, Tensor]


class GrowingCache:
    """Keys and values of one self-attention: every update appends."""

    def __init__(self) -> None:
        self.length = 0
        self._buffers: KeyValue | None = None

    def update(self, project: Callable[[], KeyValue]) -> KeyValue:
        """Appends keys and values from ``project()``, each (batch, heads, new, d_head), and returns all."""
        new = project()
        start, self.length = self.length, self.length + new[0].shape[2]
        self._buffers = self._reserve(new)
        for buffer, values in zip(self._buffers, new, strict=True):
            buffer[:, :, start : self.length] = values
        key, value = self._buffers
        return key[:, :, : self.length], value[:, :, : self.length]

    def select(self, rows: Tensor) -> None:
        """Keeps the given rows of the batch, (new batch,) indices, repeated or reordered."""
        if self._buffers is not None:
            key, value = (self._selected(buffer, rows) for buffer in self._buffers)
            self._buffers = key, value

    def _selected(self, buffer: Tensor, rows: Tensor) -> Tensor:
        selected = buffer.new_empty(len(rows), *buffer.shape[1:])
        torch.index_select(buffer[:, :, : self.length], 0, rows, out=selected[:, :, : self.length])
        return selected

    def _reserve(self, new: KeyValue) -> KeyValue:
        if self._buffers is None:
            capacity = max(64, self.length)
            key, value = (x.new_empty(*x.shape[:2], capacity, x.shape[3]) for x in new)
            return key, value
        capacity = self._buffers[0].shape[2]
        if self.length <= capacity:
            return self._buffers
        grow = max(capacity, self.length - capacity)
        key, value = (
            torch.cat([x, torch.empty_like(x[:, :, :1]).expand(-1, -1, grow, -1)], dim=2)
            for x in self._buffers
        )
        return key, value


class FixedCache:
    """Keys and values of one cross-attention, computed once from the encoder output."""

    def __init__(self) -> None:
        self._kept: KeyValue | None = None

    def update(self, project: Callable[[], KeyValue]) -> KeyValue:
        """Returns the first call's ``project()``: keys and values, each (batch, heads, source, d_head)."""
        if self._kept is None:
            self._kept = project()
        return self._kept

    def select(self, rows: Tensor) -> None:
        """Keeps the given rows of the batch; copies of one row share its memory."""
        if self._kept is None:
            return
        key, value = self._kept
        if key.shape[0] == 1:
            self._kept = key.expand(len(rows), -1, -1, -1), value.expand(len(rows), -1, -1, -1)
        else:
            self._kept = key.index_select(0, rows), value.index_select(0, rows)


Cache = GrowingCache | FixedCache


class KVCache:
    """The caches of all decoder layers for one request."""

    def __init__(self, n_decoder_layers: int) -> None:
        self.decoder = [GrowingCache() for _ in range(n_decoder_layers)]  # of masked self-attention
        self.cross = [FixedCache() for _ in range(n_decoder_layers)]

    @property
    def length(self) -> int:
        """Number of decoder positions kept."""
        return self.decoder[0].length

    def select(self, rows: Tensor, *, same_source: bool = False) -> None:
        """Keeps, repeats or reorders rows of the batch, as a beam does with its hypotheses.

        ``rows`` (new batch,) are indices into the present batch. With ``same_source`` every row keeps its
        source sentence, so that cross-attention need not change.
        """
        for cache in self.decoder:
            cache.select(rows)
        if not same_source:
            for fixed in self.cross:
                fixed.select(rows)


class StateCache:
    """The state of a recurrent decoder for one request, and the keys and values of its attention."""

    def __init__(self) -> None:
        self.state: Tensor | None = None  # (batch, d_model) after the last position; None before the first
        self.length = 0  # positions kept
        self.cross = FixedCache()

    def advance(self, state: Tensor, steps: int) -> None:
        """Keeps the state after some more positions."""
        self.state, self.length = state, self.length + steps

    def select(self, rows: Tensor, *, same_source: bool = False) -> None:
        """Keeps, repeats or reorders rows of the batch; see ``KVCache.select``."""
        if self.state is not None:
            self.state = self.state.index_select(0, rows)
        if not same_source:
            self.cross.select(rows)
