"""Parts of a logit and of a score, each followed from its writer to its reader by the plain formulas."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from lenses.again.cells import FEW, compared, equal
from lenses.again.plain import exactly, plain_part
from lenses.measures.attribution import Attribution
from lenses.measures.score_parts import ScoreParts
from lenses.measures.stream import BIASES, Writer, recorded
from transformer.model.attention import MultiHeadAttention
from transformer.model.encodings.positions import Rotary
from transformer.model.network import Network
from transformer.model.sites import AttentionKind, PlacedHead, Side
from transformer.runs.translation import Translation
from transformer.trace.report import AuditReport
from transformer.trace.view import Array

LIMIT = 1e-3
"""Share of the largest part by which a part may miss."""
MANY = 3 * FEW
"""Parts that are computed again: each takes a few products of vectors."""


def audit_attribution(
    model: Network,
    run: Translation,
    step: int,  # the row of the decoder, from 0
    tokens: tuple[int, int | None],  # the token whose logit is split, and the one that is subtracted
    found: Attribution,  # as it is drawn
    count: int | None = MANY,  # parts to compute again; None for all
) -> AuditReport:
    """Whether parts belong to the writers and keys that they are drawn for."""
    weight, _ = model.projection
    asked = exactly(weight[tokens[0]]) - (0.0 if tokens[1] is None else exactly(weight[tokens[1]]))
    asked = asked * model.config.output_scale
    parts: list[tuple[Writer, int | None]] = []
    values, heads = [], {}
    for kind, split in found.keys.items():
        name = model.config.sites[kind].name
        for layer, head in np.ndindex(split.shape[:2]):
            parts += [(Writer(name, layer, head), key) for key in range(split.shape[2])]
            values += split[layer, head].tolist()
            heads[Writer(name, layer, head)] = float(split[layer, head].sum())
    for writer, value in zip(found.writers, found.values.tolist(), strict=True):
        if writer.head is None and writer.what != BIASES:
            parts.append((writer, None))
            values.append(value)

    def again(places: list[tuple[Writer, int | None]]) -> list[float]:
        vectors = (plain_part(model, run, "decoder", each, step, None, key) for each, key in places)
        return [float(vector @ asked) for vector in vectors]

    named = zip(found.writers, found.values.tolist(), strict=True)
    drawn = {writer: value for writer, value in named if writer.head is not None}
    whole = np.array([heads.get(writer, math.nan) for writer in drawn])
    summed = equal("heads as sums over their keys", np.array([*drawn.values()]), whole, LIMIT)
    seed = recorded(run).hash
    return summed.joined(compared("parts of the logit", parts, values, again, seed, LIMIT, count))


def audit_score(
    model: Network,
    run: Translation,
    which: PlacedHead,
    cell: tuple[int, int],  # query and key, from 0
    found: ScoreParts,  # as it is drawn
    count: int | None = MANY,  # pairs to compute again; None for all
) -> AuditReport:
    """Whether parts of a score belong to the two writers that they are drawn for."""
    kind, layer, head = which
    site, attention = model.config.sites[kind], model.attention(kind, layer)
    assert isinstance(attention, MultiHeadAttention)
    reader = site.sublayer(layer)
    width = model.config.d_head
    divisor = math.sqrt(width) if site.score == "scaled_dot" else 1.0
    rows = slice(head * width, (head + 1) * width)

    def vector(writer: Writer, side: Side, at: int, own: bool, weight: Tensor) -> Array:
        read = plain_part(model, run, side, writer, at, reader if own else None)
        made = exactly(weight[rows]) @ read
        rotates = site.own_keys and isinstance(model.stack(side).positions, Rotary)
        return _turned(made, at) if rotates else made

    def again(places: list[tuple[int, int]]) -> list[float]:
        asking = {
            i: vector(found.queries[i], site.query_side, cell[0], True, attention.q_proj.weight)
            for i in {i for i, _ in places}
        }
        asked = {
            j: vector(found.keys[j], site.key_side, cell[1], site.own_keys, attention.k_proj.weight)
            for j in {j for _, j in places}
        }
        return [float(asking[i] @ asked[j]) / divisor for i, j in places]

    # The biases of the norms and projections are what is left of the sum.
    places = [
        (i, j)
        for i, j in np.ndindex(found.values.shape)
        if BIASES not in (found.queries[i].what, found.keys[j].what)
    ]
    values = [float(found.values[place]) for place in places]
    return compared("parts of the score", places, values, again, recorded(run).hash, LIMIT, count)


def _turned(vector: Array, position: int) -> Array:
    """R_position x, pair by pair (Su et al. 2021, equation 15)."""
    pairs = vector.reshape(-1, 2)
    angles = position * 10_000.0 ** (-2 * np.arange(len(pairs)) / len(vector))
    cosine, sine = np.cos(angles), np.sin(angles)
    turned = pairs[:, 0] * cosine - pairs[:, 1] * sine, pairs[:, 0] * sine + pairs[:, 1] * cosine
    found: Array = np.stack(turned, -1).ravel()
    return found


def through_keys(found: Attribution, kind: AttentionKind, drawn: Array) -> AuditReport:
    """Whether sums over all heads are drawn at the keys whose sums they are."""
    return equal("through attention", drawn, np.einsum("lhk->k", found.keys[kind]), LIMIT)
