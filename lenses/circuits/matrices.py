"""Heads as matrices on tokens: whether W_V W_O copies what it reads, and whether W_Q W_Kᵀ looks for the same.

The tokens' own path only (Elhage et al. 2021, "OV" and "QK circuits"): embedding, LayerNorm's centring and γ,
the head, the final LayerNorm, the output matrix. The score of a matrix from tokens to tokens is Σ λ / Σ |λ|
over its eigenvalues: 1 if every direction is sent to itself, −1 if to its opposite, about 0 if it is turned.
A rotation of positions stands between query and key, so QK has a score at a distance. Each token's σ, and
every bias, are left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from lenses.inside.weights import exact, head_rows, multi_head, output_rows, rotated
from lenses.measures.stream import UnmeasuredError
from transformer.model.network import Network
from transformer.model.norms import StreamNorm, centred
from transformer.model.sites import AttentionKind
from transformer.trace.view import Array


class Through(NamedTuple):
    """An earlier head whose output is the key's."""

    layer: int  # from 0
    head: int  # from 0


def copying(model: Network, kind: AttentionKind | str = "decoder") -> Array:
    """Strength with which each head's W_V W_O raises the logits of the tokens that it reads.

    Args:
        model: A pre-norm model.
        kind: An attention whose keys are tokens of the text that is written: "decoder".

    Returns:
        (layers, heads) Σ λ / Σ |λ| from −1 to 1, of the (pieces, pieces) matrix from token to logit.

    Raises:
        UnmeasuredError: The model has post-norm, or no such attention.
    """
    kind = _kind(model, kind)
    layers, heads = range(model.config.sites[kind].n_layers), range(model.config.n_heads)
    return _table([[_copied(model, kind, layer, head) for head in heads] for layer in layers])


def matching(
    model: Network, distance: int, kind: AttentionKind | str = "decoder", through: Through | None = None
) -> Array:
    """Rise of each head's scores where the key is the same token as the query.

    Args:
        model: A pre-norm model.
        distance: Positions between query and key, from 0; matters with rotary positions only.
        kind: Self-attention of the stack that writes: "decoder".
        through: A head whose W_V W_O the key's token passes first, as the token before it passes a
            previous-token head; heads of its layer and of earlier ones read nothing of it.

    Returns:
        (layers, heads) Σ λ / Σ |λ| from −1 to 1; not a number in layers up to that of ``through``.

    Raises:
        UnmeasuredError: The model has post-norm, or no such attention.
        ValueError: The distance is below 0, or beyond the model's positions.
    """
    kind = _kind(model, kind)
    if distance < 0:
        raise ValueError("A distance is 0 or more.")
    rows = []
    for layer in range(model.config.sites[kind].n_layers):
        early = through is not None and layer <= through.layer
        heads = [
            np.nan if early else _matched(model, kind, layer, head, distance, through)
            for head in range(model.config.n_heads)
        ]
        rows.append(heads)
    return _table(rows)


def _kind(model: Network, kind: AttentionKind | str) -> AttentionKind:
    site = model.config.sites.get(AttentionKind(kind))
    if site is None or not site.own_keys or site.query_side != "decoder":
        raise UnmeasuredError("These scores are those of masked self-attention, which this model lacks.")
    if model.config.norm != "pre":
        raise UnmeasuredError("These scores need pre-norm: with post-norm, a token's own path has no end.")
    return AttentionKind(kind)


def _copied(model: Network, kind: AttentionKind, layer: int, head: int) -> float:
    value, out = _value_out(model, kind, layer, head)
    read, written = _read(model, kind, layer), _centred(model.stack("decoder").final_norm)
    between = _table_of(model).T @ exact(model.projection[0])  # Eᵀ U
    small = value @ read @ between @ written @ out  # eigenvalues but 0 are those of the large matrix
    return _score(small)


def _matched(
    model: Network, kind: AttentionKind, layer: int, head: int, distance: int, through: Through | None
) -> float:
    attention, read = multi_head(model, kind, layer), _read(model, kind, layer)
    both = attention.q_proj, attention.k_proj
    query, key = (head_rows(linear, attention.n_heads, head) @ read for linear in both)
    if through is not None:
        value, out = _value_out(model, kind, through.layer, through.head)
        key = key @ out @ value @ _read(model, kind, through.layer)
    positions = model.stack("decoder").positions
    positions.check(1, distance)
    query = rotated(positions, query.T[:, None], distance)[:, 0].T
    table = _table_of(model)
    return _score(query @ (table.T @ table) @ key.T)


def _table_of(model: Network) -> Tensor:
    """(pieces, d_model) embeddings as they enter; their common factor changes no score."""
    return exact(model.table("decoder").weight)


def _read(model: Network, kind: AttentionKind, layer: int) -> Tensor:
    """(d_model, d_model) centring and γ of the LayerNorm before the head."""
    return _centred(model.residual(model.config.sites[kind].sublayer(layer)).norm)


def _centred(norm: nn.Module) -> Tensor:
    """(d_model, d_model) γ, and centring if the norm takes the mean: what it does but for σ."""
    assert isinstance(norm, StreamNorm)
    gain = exact(norm.weight)
    return gain[:, None] * centred(norm, torch.eye(len(gain), dtype=torch.float64))


def _value_out(model: Network, kind: AttentionKind, layer: int, head: int) -> tuple[Tensor, Tensor]:
    """W_V (d_head, d_model) and W_O (d_model, d_head) of a head, as they act on columns."""
    attention = multi_head(model, kind, layer)
    out = output_rows(model, kind, layer)[0][head].T
    return head_rows(attention.v_proj, attention.n_heads, head), out


def _score(matrix: Tensor) -> float:
    values = torch.linalg.eigvals(matrix)
    size = float(values.abs().sum())
    return float(values.real.sum()) / size if size else 0.0


def _table(rows: list[list[float]]) -> Array:
    return np.array(rows, dtype=np.float32)
