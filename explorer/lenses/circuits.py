"""What a head compares, as points of a plane, and what the token costs on which it rests."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from explorer.lenses.inside.parts import exact, head_rows, multi_head
from explorer.lenses.measures.effect import rewired
from explorer.lenses.measures.stream import Heads, UnmeasuredError, recorded
from transformer.config import PlacedHead
from transformer.encodings import Rotary
from transformer.model import Network
from transformer.run import Translation
from transformer.text.words import is_end
from transformer.translator import Translator
from transformer.view import Array

_FULL = 1e-6
"""Largest deviation of AᵀB from the identity, as a share of its largest number."""
OUTLIER = 6.0
"""Size of an outlier dimension, as a multiple of the mean over all dimensions of the same
tokens."""


class Points(NamedTuple):
    """Queries and keys of a head over several sentences, as points of a plane."""

    queries: Array  # (queries of all sentences, 2)
    keys: (
        Array  # (keys of all sentences, 2), without their mean, which adds the same to a whole row
    )
    share: float  # share of the variance of q·k within rows that the plane holds; 1 is all
    axes: tuple[int, int]  # the two directions of the balanced basis, from 0, the strongest first
    left_out: str  # what scores have beside q·k, in a sentence; empty if nothing


def bases(model: Network, which: PlacedHead) -> tuple[Tensor, Tensor]:
    """(d_head, d_head) A and B float64: A q and B k are query and key in the balanced basis, AᵀB =
    1.

    W_Qᵀ W_K = U S Vᵀ, and √S to each side (Elhage et al. 2021, "QK"). UnmeasuredError if W_Q or W_K
    of the head lacks rank: then some of q·k is in biases alone.
    """
    attention = multi_head(model, *which[:2])
    query, key = (
        head_rows(each, attention.n_heads, which[2])
        for each in (attention.q_proj, attention.k_proj)
    )
    (_, left), (_, right) = (torch.linalg.qr(rows.T) for rows in (query, key))
    u, size, v = torch.linalg.svd(left @ right.T)
    root = size.sqrt()[:, None]
    # A W_Q = √S Uᵀ, and W_Q = leftᵀ of an orthonormal basis
    a = root * (u.T @ torch.linalg.pinv(left).T)
    b = root * (v @ torch.linalg.pinv(right).T)
    if left.shape[0] != left.shape[1] or float((a.T @ b - torch.eye(len(a))).abs().max()) > _FULL:
        raise UnmeasuredError(
            "W_Q or W_K of this head has not its full rank, so no basis holds all of q·k."
        )
    return a, b


def points(model: Network, runs: Sequence[Translation], which: PlacedHead) -> Points:
    """Queries and keys of a head in the plane of its balanced basis that holds most of the scores'
    variance.

    UnmeasuredError if a rotation of positions stands between them, or the head lacks rank.
    """
    kind, layer, head = which
    site = model.config.sites[kind]
    if site.own_keys and isinstance(model.stack(site.query_side).positions, Rotary):
        raise UnmeasuredError(
            "Rotary positions turn every query and key by its place, so no one plane holds their "
            "products."
        )
    a, b = bases(model, which)
    traces = [recorded(run).layer(kind, layer) for run in runs]
    queries = [exact(t.query[head]) @ a.T for t in traces]
    keys = [exact(t.key[head]) @ b.T for t in traces]
    rows = []
    for q, k, trace in zip(queries, keys, traces, strict=True):
        for terms, seen in zip(q[:, None] * k, trace.mask(), strict=True):
            rows.append(terms[seen] - terms[seen].mean(0))
    products = torch.cat(rows).T @ torch.cat(rows)
    # the share of a pair of directions: all but what is left without them
    with_all = products.sum(1)
    own = products.diagonal()
    pair = own[:, None] + own + 2 * products
    share = (2 * (with_all[:, None] + with_all) - pair) / products.sum().clamp(min=1e-12)
    share.fill_diagonal_(-torch.inf)
    first, second = sorted(divmod(int(share.argmax()), len(share)))
    asking, asked = (torch.cat(each)[:, [first, second]] for each in (queries, keys))
    left_out = "Scores also have a bias of positions, which is left out here." * (
        traces[0].bias is not None
    )
    both = asking.float().numpy(), (asked - asked.mean(0)).float().numpy()
    return Points(*both, float(share[first, second]), (first, second), left_out)


class Sink(NamedTuple):
    """A token that rests weight, `</s>` or the first key, over several sentences; layers count from
    0."""

    token: str  # the token
    weight: float  # mean weight on it, over rows that see more than one key
    value: float  # length of what its value writes, over the mean length of the other keys'
    # length of the stream that the head reads there, over the mean length at the other keys
    stream: float
    outliers: tuple[
        int, ...
    ]  # dimensions of that stream, from 0, whose size there is at least `OUTLIER`
    # nats that a token loses without this key in this head, whose other weights share its weight
    lost: float
    rows: int  # number of tokens of `lost`


def sink(
    translator: Translator,
    runs: Sequence[Translation],
    which: PlacedHead,
    tell: Callable[[float], object] = lambda _: None,
) -> Sink:
    """The sink of a head: `</s>` if it is among the keys, else the first key; errors as for
    ``recorded``."""
    kind, layer, head = which
    weights, values, lengths, lost = (list[float]() for _ in range(4))
    here = list[Tensor]()
    token = ""
    for done, run in enumerate(runs):
        names = run.labels(kind).keys
        site = run.config.sites[kind]
        place = next((at for at, name in enumerate(names) if is_end(name)), 0)
        token = names[place]
        others = np.arange(len(names)) != place
        if not others.any():
            continue
        own = recorded(run).weights(kind, layer)[head]
        mask = run.mask(kind, layer, head)
        weights += own[mask.sum(-1) > 1, place].tolist()
        if site.own_keys:  # the stream before any norm of the sub-layer
            stream = run.stream(site.sublayer(layer)).before
        else:
            stream = run.stream(run.config.stacks[site.key_side].passed()[-1]).stream
        written = Heads(translator.model, run, kind, layer).values()[head]
        for ratios, vectors in ((values, written), (lengths, stream)):
            norms = vectors.norm(dim=-1).numpy()
            ratios.append(norms[place] / max(norms[others].mean(), 1e-9))
        here.append(stream[place].abs())
        rest = np.where(others, own, 0)
        sums = rest.sum(-1, keepdims=True)
        without = np.where(sums > 1e-6, rest / np.maximum(sums, 1e-6), own).astype(np.float32)
        lost += (-rewired(translator, run, kind, layer, head, without[None])[0]).tolist()
        tell((done + 1) / len(runs))
    size = torch.stack(here).mean(0)
    outliers = torch.nonzero(size >= OUTLIER * size.mean())[:, 0].tolist()
    weight, value, length = (float(np.mean(each)) for each in (weights, values, lengths))
    return Sink(token, weight, value, length, tuple(outliers), float(np.mean(lost)), len(lost))
