"""What a head compares, as points of a plane, and what the token costs on which it rests."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from explorer.lenses.inside.parts import exact, head_map, multi_head
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
    # (keys of all sentences, 2), without their mean, which adds the same to a whole row
    keys: Array
    share: float  # share of the variance of q·k within rows that the plane holds; 1 is all
    axes: tuple[int, int]  # the two directions of the balanced basis, from 0, the strongest first
    left_out: str  # what scores have beside q·k, in a sentence; empty if nothing


def bases(model: Network, which: PlacedHead) -> tuple[Tensor, Tensor]:
    """A and B, (d_head, d_head) float64: A q and B k are query and key in the balanced basis.

    There AᵀB = 1: W_Qᵀ W_K = U S Vᵀ, and √S to each side (Elhage et al. 2021, "QK").
    UnmeasuredError if W_Q or W_K of the head lacks rank: then some of q·k is in biases alone.
    """
    attention = multi_head(model, *which[:2])
    if attention.q_norm is not None:
        raise UnmeasuredError(
            "Each query and key of this head is divided by its own length, so no one plane holds "
            "their products."
        )
    query, _ = head_map(attention, "query", which[2])
    key, _ = head_map(attention, "key", which[2])
    _, left = torch.linalg.qr(query.T)
    _, right = torch.linalg.qr(key.T)
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
    """Queries and keys of a head in the plane that holds most of the variance of its scores.

    The plane is one of the balanced basis. UnmeasuredError if a rotation of positions stands
    between them, or the head lacks rank.
    """
    kind, layer, head = which
    site = model.config.sites[kind]
    if site.own_keys and isinstance(model.stack(site.query_side).positions, Rotary):
        raise UnmeasuredError(
            "Rotary positions turn every query and key by its place, so no one plane holds their "
            "products."
        )
    a, b = bases(model, which)
    records = [recorded(run).layer(kind, layer) for run in runs]
    queries = [exact(record.query[head]) @ a.T for record in records]
    keys = [exact(record.keys(head)) @ b.T for record in records]
    masks = [record.mask() for record in records]
    axes, share = _plane(queries, keys, masks)
    left_out = ""
    if records[0].bias is not None:
        left_out = "Scores also have a bias of positions, which is left out here."
    key_points = torch.cat(keys)[:, axes]
    return Points(
        queries=torch.cat(queries)[:, axes].float().numpy(),
        keys=(key_points - key_points.mean(0)).float().numpy(),
        share=share,
        axes=(axes[0], axes[1]),
        left_out=left_out,
    )


def _plane(
    queries: Sequence[Tensor], keys: Sequence[Tensor], masks: Sequence[Tensor]
) -> tuple[list[int], float]:
    """The two directions that hold most of the variance of q·k within rows, and its share.

    Of queries and keys (…, d_head) and masks (queries, keys) of every sentence.
    """
    rows = []
    for query, key, mask in zip(queries, keys, masks, strict=True):
        for terms, visible in zip(query[:, None] * key, mask, strict=True):
            rows.append(terms[visible] - terms[visible].mean(0))
    products = torch.cat(rows).T @ torch.cat(rows)
    # the share of a pair of directions: all but what is left without them
    with_all = products.sum(1)
    alone = products.diagonal()
    pair = alone[:, None] + alone + 2 * products
    share = (2 * (with_all[:, None] + with_all) - pair) / products.sum().clamp(min=1e-12)
    share.fill_diagonal_(-torch.inf)
    axes = sorted(divmod(int(share.argmax()), len(share)))
    return axes, float(share[axes[0], axes[1]])


class Sink(NamedTuple):
    """A token that rests weight, `</s>` or the first key, over several sentences."""

    token: str  # the token
    weight: float  # mean weight on it, over rows that see more than one key
    value: float  # length of what its value writes, over the mean length of the other keys'
    # length of the stream that the head reads there, over the mean length at the other keys
    stream: float
    # dimensions of that stream, from 0, whose size there is at least `OUTLIER`
    outliers: tuple[int, ...]
    # nats that a token loses without this key in this head, whose other weights share its weight
    lost: float
    rows: int  # number of tokens of `lost`


def sink(
    translator: Translator,
    runs: Sequence[Translation],
    which: PlacedHead,
    tell: Callable[[float], object] = lambda _: None,
) -> Sink:
    """The sink of a head: what ends a text if that is among the keys, else the first key.

    Layers count from 0; errors as for ``recorded``.
    """
    sentences = list[_SinkOfRun]()
    token = ""
    for done, run in enumerate(runs):
        names = run.labels(which[0]).keys
        place = next((key for key, name in enumerate(names) if is_end(name)), 0)
        token = names[place]
        if len(names) > 1:
            sentences.append(_sink_of(translator, run, which, place))
            tell((done + 1) / len(runs))
    size = torch.stack([sentence.size for sentence in sentences]).mean(0)
    outliers = torch.nonzero(size >= OUTLIER * size.mean())[:, 0].tolist()
    lost = np.concatenate([sentence.lost for sentence in sentences])
    return Sink(
        token=token,
        weight=float(np.mean(np.concatenate([sentence.weights for sentence in sentences]))),
        value=float(np.mean([sentence.value for sentence in sentences])),
        stream=float(np.mean([sentence.stream for sentence in sentences])),
        outliers=tuple(outliers),
        lost=float(np.mean(lost)),
        rows=len(lost),
    )


class _SinkOfRun(NamedTuple):
    """The sink of a head in one sentence; what is the same in `Sink` is named so there."""

    weights: NDArray[np.float64]  # (rows,) on it, of rows that see more than one key
    value: float
    stream: float
    size: Tensor  # (d_model,) of the numbers of the stream there
    lost: NDArray[np.float64]  # (steps,)


def _sink_of(translator: Translator, run: Translation, which: PlacedHead, place: int) -> _SinkOfRun:
    """The sink of a head in a sentence: the key at a place."""
    kind, layer, head = which
    weights = recorded(run).weights(kind, layer)[head]
    choosing = run.mask(kind, layer, head).sum(-1) > 1
    stream = _read(run, which)
    changed = _without(weights, place)[None]
    return _SinkOfRun(
        weights=weights[choosing, place].astype(np.float64),
        value=_ratio(Heads(translator.model, run, kind, layer).values()[head], place),
        stream=_ratio(stream, place),
        size=stream[place].abs(),
        lost=-rewired(translator, run, kind, layer, head, maps=changed)[0].astype(np.float64),
    )


def _read(run: Translation, which: PlacedHead) -> Tensor:
    """(keys, d_model) the stream of which the head reads its keys, before any norm."""
    site = run.config.sites[which[0]]
    if site.own_keys:
        return run.stream(site.sublayer(which[1])).before
    return run.stream(run.config.stacks[site.key_side].passed()[-1]).stream


def _ratio(vectors: Tensor, place: int) -> float:
    """The length of the vector at a place, over the mean length of the others (keys, d_model)."""
    norms = vectors.norm(dim=-1).numpy()
    rest = np.delete(norms, place)
    ratio: float = norms[place] / max(rest.mean(), 1e-9)
    return ratio


def _without(weights: Array, place: int) -> Array:
    """Weights (queries, keys) of which a key's are shared by the other keys of its row."""
    rest = weights.copy()
    rest[:, place] = 0
    sums = rest.sum(-1, keepdims=True)
    return np.where(sums > 1e-6, rest / np.maximum(sums, 1e-6), weights).astype(np.float32)
