"""Why this score: q·k / √d_k, split over pairs of what wrote the query's stream and what wrote the key's.

The product is bilinear, so it splits exactly (Elhage et al. 2021, "QK circuit"); the σ of every LayerNorm is
held fixed, a rotation acts on each part before the product, and a bias of positions is a part of its own.
A model that does not divide by √d_k has the parts of q·k.
"""

from __future__ import annotations

from dataclasses import dataclass

from explorer.lenses.inside.weights import multi_head, projected, rotated
from explorer.lenses.measures.stream import Writer, parts, recorded
from transformer.config import AttentionKind, PlacedHead
from transformer.model import Network
from transformer.run import Translation
from transformer.view import Array, AuditReport, Check, read_only

_SUMS = "The parts sum to the score that the model computed: that proves their total, not who wrote which."
LIMIT = 1e-4
"""Share of the largest part by which the parts may miss the score."""


@dataclass(frozen=True, eq=False)
class ScoreParts:
    """The score of one query and one key as a sum."""

    score: float  # as the model computed it, with the bias of positions, before the mask
    queries: tuple[Writer, ...]  # who wrote the stream of the query
    keys: tuple[Writer, ...]  # who wrote the stream of the key
    values: Array  # (queries, keys) float32; with ``bias`` they sum to the score
    bias: float  # what the positional encoding adds to the scaled product
    audit: AuditReport  # whether the parts sum to the score


def score_parts(
    model: Network,
    run: Translation,  # made with ``capture=Capture(residual=True)``, without changes
    which: tuple[AttentionKind | str, int, int],  # kind, layer and head, from 0
    query: int,  # position of the query, from 0
    key: int,  # position of the key, from 0
) -> ScoreParts:
    """Splits one score q·k / √d_k over pairs of what wrote the two streams (Elhage et al. 2021, "QK").

    Returns:
        (queries' writers, keys' writers) parts, without unit; with the bias of positions they sum to the
        score.

    Raises:
        NotCapturedError: The residual stream was not recorded.
        UnmeasuredError: The model is no Transformer, or something was changed in the run.
        IndexError: There is no such head or position.
    """
    kind, layer, head = AttentionKind(which[0]), which[1], which[2]
    score, added = _score(run, (kind, layer, head), query, key)
    attention, site = multi_head(model, kind, layer), model.config.sites[kind]
    sublayer = site.sublayer(layer)
    asking, asked = parts(model, run, site.query_side, sublayer)
    own = (asking, asked) if site.own_keys else parts(model, run, site.key_side)
    positions = model.stack(site.query_side).positions if site.own_keys else None
    left, right = (
        rotated(positions, projected(linear, found[:, [at]], attention.n_heads, head), at)[:, 0]
        for linear, found, at in ((attention.q_proj, asked, query), (attention.k_proj, own[1], key))
    )
    values = left @ right.T / attention.score.divisor(left.shape[-1])
    largest = max(1.0, float(values.abs().max()))
    gap = abs(float(values.sum()) + added - score) / largest
    return ScoreParts(
        score,
        asking,
        own[0],
        read_only(values.float()),
        added,
        AuditReport((Check("parts sum to the score", gap, LIMIT),), told=(_SUMS,), claim="sums up"),
    )


def _score(run: Translation, which: PlacedHead, query: int, key: int) -> tuple[float, float]:
    """The score, and what positions added to it."""
    trace = recorded(run)
    bias, scores, _, _ = trace.map(*which)
    if not (0 <= query < scores.shape[0] and 0 <= key < scores.shape[1]):
        raise IndexError(f"There is no cell ({query}, {key}); this head has {scores.shape}.")
    return float(scores[query, key]), 0.0 if bias is None else float(bias[query, key])
