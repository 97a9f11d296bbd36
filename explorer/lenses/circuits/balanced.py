"""Queries and keys of a head in the basis in which both are as long: a picture that q·k itself has.

Any invertible change of basis of queries, with the inverse one of keys, leaves q·k as it is; so the axes of q
and k as stored say nothing. The singular value decomposition W_Qᵀ W_K = U S Vᵀ says which directions of the
two streams a head compares, and √S to each side makes them equally long (Elhage et al. 2021, "QK"). Biases
stay in the vectors: the products of the new vectors are the head's q·k, to rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from explorer.lenses.inside.weights import exact, head_rows, multi_head
from explorer.lenses.measures.stream import UnmeasuredError, recorded
from transformer.config import AttentionKind
from transformer.encodings import Rotary
from transformer.model import Network
from transformer.run import Translation
from transformer.view import Array

_FULL = 1e-6
"""Largest deviation of AᵀB from the identity, as a share of its largest number."""


class Points(NamedTuple):
    """Queries and keys of a head over several sentences, as points of a plane."""

    queries: Array  # (queries of all sentences, 2)
    keys: Array  # (keys of all sentences, 2), without their mean, which adds the same to a whole row
    share: float  # share of the variance of q·k within rows that the plane holds; 1 is all
    axes: tuple[int, int]  # the two directions of the balanced basis, from 0, the strongest first
    left_out: str  # what scores have beside q·k, in a sentence; empty if nothing


def bases(model: Network, kind: AttentionKind, layer: int, head: int) -> tuple[Tensor, Tensor]:
    """(d_head, d_head) A and B float64: A q and B k are query and key in the balanced basis, AᵀB = 1.

    UnmeasuredError if W_Q or W_K of the head lacks rank: then some of q·k is in biases alone.
    """
    attention = multi_head(model, kind, layer)
    query, key = (head_rows(each, attention.n_heads, head) for each in (attention.q_proj, attention.k_proj))
    (_, left), (_, right) = (torch.linalg.qr(rows.T) for rows in (query, key))
    u, size, v = torch.linalg.svd(left @ right.T)
    root = size.sqrt()[:, None]
    # A W_Q = √S Uᵀ, and W_Q = leftᵀ of an orthonormal basis
    a, b = root * (u.T @ torch.linalg.pinv(left).T), root * (v @ torch.linalg.pinv(right).T)
    if left.shape[0] != left.shape[1] or float((a.T @ b - torch.eye(len(a))).abs().max()) > _FULL:
        raise UnmeasuredError("W_Q or W_K of this head has not its full rank, so no basis holds all of q·k.")
    return a, b


def points(model: Network, runs: list[Translation], which: tuple[AttentionKind, int, int]) -> Points:
    """Queries and keys of a head in the plane of its balanced basis that holds most of the scores' variance.

    Args:
        model: The model of the runs.
        runs: Recorded runs without changes.
        which: Kind, layer and head, from 0.

    Raises:
        UnmeasuredError: A rotation of positions stands between query and key, or the head lacks rank.
    """
    kind, layer, head = which
    site = model.config.sites[kind]
    if site.own_keys and isinstance(model.stack(site.query_side).positions, Rotary):
        raise UnmeasuredError(
            "Rotary positions turn every query and key by its place, so no one plane holds their products."
        )
    a, b = bases(model, kind, layer, head)
    queries, keys, rows = [], [], []
    for run in runs:
        trace = recorded(run).layer(kind, layer)
        queries.append(exact(trace.query[head]) @ a.T)
        keys.append(exact(trace.key[head]) @ b.T)
        terms = queries[-1][:, None] * keys[-1]
        for row, seen in zip(terms, trace.mask(), strict=True):
            rows.append(row[seen] - row[seen].mean(0))
    centred = torch.cat(rows)
    products = centred.T @ centred
    with_all, own = products.sum(1), products.diagonal()
    pair = own[:, None] + own + 2 * products
    share = (2 * (with_all[:, None] + with_all) - pair) / products.sum().clamp(min=1e-12)
    share.fill_diagonal_(-torch.inf)
    first, second = divmod(int(share.argmax()), len(share))
    axes = min(first, second), max(first, second)
    asking, asked = torch.cat(queries)[:, list(axes)], torch.cat(keys)[:, list(axes)]
    biased = recorded(runs[0]).layer(kind, layer).bias is not None
    return Points(
        asking.float().numpy(),
        (asked - asked.mean(0)).float().numpy(),
        float(share[first, second]),
        axes,
        "Scores also have a bias of positions, which is left out here." if biased else "",
    )
