"""Spread of q·k of one head over a sentence: the reason for ÷ √d_k (section 3.2.1, note 4)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from transformer.trace import LayerTrace


@dataclass(frozen=True)
class ProductSpread:
    """Variances of one head over one sentence; the vectors are those that are multiplied, rotated if at all.

    If the entries of q and k were independent, with mean 0 and variance 1, q·k would have the variance d_k.
    """

    products: float  # variance of q·k over all pairs of a query and a key that it may attend to
    pairs: int  # how many pairs these are
    query: float  # variance of the entries of all queries
    key: float  # variance of the entries of all keys
    d_head: int  # d_k

    @property
    def divided(self) -> float:
        """Variance of q·k / √d_k over the same pairs."""
        return self.products / self.d_head


def product_spread(record: LayerTrace, head: int) -> ProductSpread:
    """Measures a head (from 0) of an attention sub-layer, recorded with unscaled queries and keys."""
    query, key = record.query[head].double(), record.key[head].double()
    products = (query @ key.T)[record.mask()]
    return ProductSpread(
        products=_variance(products),
        pairs=len(products),
        query=_variance(query),
        key=_variance(key),
        d_head=query.shape[-1],
    )


def _variance(values: torch.Tensor) -> float:
    return float(values.var(correction=0)) if values.numel() else 0.0
