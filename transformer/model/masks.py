"""Padding, causal masks, and windows around a centre. In every mask, True means "may attend"."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class AttentionMask:
    """Which query may attend to which key, kept as a rule: memory is linear in the length, not quadratic."""

    # (batch, keys) bool, True for tokens, False for padding; None if nothing is padded
    key_padding: Tensor | None = None
    causal: bool = False  # whether query i sees only keys 0 to ``first_query`` + i (section 3.2.3)
    # position of the first query among the keys; above 0 if earlier positions are cached
    first_query: int = 0
    # (batch, length) numbers of the texts that share a row; a query sees the keys of its own text only. None
    # if every row is one text.
    texts: Tensor | None = None

    @property
    def is_causal_alone(self) -> bool:
        """True if nothing is hidden but later keys."""
        return self.causal and self.key_padding is None and self.texts is None

    def dense(self, queries: int, keys: int, device: torch.device | str = "cpu") -> Tensor | None:
        """The mask as one matrix, (batch or 1, 1, queries, keys) bool; None if nothing is masked."""
        mask = None
        if self.causal and self.first_query + 1 < keys:
            mask = causal_mask(queries, keys, self.first_query, device)[None, None]
        if self.key_padding is not None:
            padding = self.key_padding[:, None, None, :]
            mask = padding.expand(-1, 1, queries, keys) if mask is None else mask & padding
        if self.texts is not None:
            own = self.texts[:, None, :, None] == self.texts[:, None, None, :]
            mask = own if mask is None else mask & own
        return mask


@dataclass(frozen=True, eq=False)
class Focus:
    """Where each query looks, predicted before it looks: local attention (Luong et al. 2015, section 3.2).

    A query sees the keys at most ``reach`` from its centre. The softmax over these is multiplied by a
    Gaussian around the centre (equation 10), so that a row sums to less than 1.
    """

    centres: Tensor  # (…, queries) p_t: positions among the keys, counted from 0, not rounded
    reach: int  # D, in positions

    def of(self, rows: slice) -> Focus:
        """The same for some of the queries."""
        return Focus(self.centres[..., rows], self.reach)

    def visible(self, keys: int) -> Tensor:
        """(…, queries, keys) bool: the window [p_t − D, p_t + D]."""
        return self._distances(keys).abs() <= self.reach

    def factors(self, keys: int) -> Tensor:
        """(…, queries, keys): exp(−(s − p_t)² / 2σ²), with σ = D / 2."""
        return torch.exp(-2.0 * (self._distances(keys) / self.reach).square())

    def _distances(self, keys: int) -> Tensor:
        return torch.arange(keys, device=self.centres.device) - self.centres[..., None]


def token_mask(token_ids: Tensor, pad_id: int) -> Tensor:
    """(…, length) bool: False for the padding at the end; a ``pad_id`` before a token counts as a token."""
    tokens = token_ids != pad_id
    return tokens.flip(-1).cumsum(-1).flip(-1) > 0


def padding_mask(token_ids: Tensor, pad_id: int) -> Tensor | None:
    """(batch, length) bool, True for the tokens of padded ids; None if nothing is padded."""
    mask = token_mask(token_ids, pad_id)
    return None if bool(mask.all()) else mask


def causal_mask(queries: int, keys: int, first_query: int = 0, device: torch.device | str = "cpu") -> Tensor:
    """(queries, keys) bool: row i may attend to keys 0 to ``first_query`` + i (section 3.2.3)."""
    query_positions = torch.arange(first_query, first_query + queries, device=device)
    return torch.arange(keys, device=device) <= query_positions[:, None]
