"""Reading of a head: what wrote the streams from which it makes its queries and keys, for every cell at once.

q_i · k_j / √d_k = Σ_w q_i · k_j⁽ʷ⁾ / √d_k, with the key split over what wrote its stream and the query whole,
or the other way round (Elhage et al. 2021, "K-composition" and "Q-composition"); the σ of every LayerNorm is
held fixed, and a rotation acts on each part. ``score_parts`` splits one cell over pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from transformer.lenses.inside.weights import multi_head, projected, rotated
from transformer.lenses.measures.stream import Writer, parts, recorded
from transformer.model.network import Network
from transformer.model.sites import AttentionKind
from transformer.runs.translation import Translation
from transformer.trace.report import AuditReport, Check
from transformer.trace.view import Array, BoolArray, read_only

_SUMS = "The parts sum to the scores that the model computed: that proves their total, not who wrote which."
LIMIT = 1e-4
"""Share of the largest part by which the parts may miss a score."""
Split = Literal["query", "key"]


@dataclass(frozen=True, eq=False)
class Reading:
    """The scores of a head as sums over what wrote one of its two streams."""

    writers: tuple[Writer, ...]
    values: Array  # (writers, queries, keys) float32; with the bias of positions they sum to the scores
    audit: AuditReport

    def advantage(self, cells: BoolArray, seen: BoolArray) -> Array:
        """By how much the parts of some cells exceed those of the other keys that their queries see.

        Args:
            cells: (queries, keys) the cells asked for.
            seen: (queries, keys) the mask.

        Returns:
            (writers,) means over the cells; their sum is the advantage in the score.
        """
        rows = np.flatnonzero(cells.any(1) & (seen & ~cells).any(1))
        found = np.zeros(len(self.writers))
        for row in rows:
            own, others = cells[row], seen[row] & ~cells[row]
            found += self.values[:, row, own].mean(1) - self.values[:, row, others].mean(1)
        mean: Array = (found / max(1, len(rows))).astype(np.float32)
        return mean


def reading(
    model: Network, run: Translation, kind: AttentionKind | str, layer: int, head: int, split: Split = "key"
) -> Reading:
    """Splits all scores of a head over what wrote the streams of its keys, or of its queries.

    Args:
        model: The model of the run.
        run: Made with ``capture=Capture(residual=True)``, without changes.
        kind: "encoder", "decoder" or "cross".
        layer: The layer, from 0.
        head: The head, from 0.
        split: The side that is split; the other stays whole.

    Returns:
        (writers, queries, keys) parts of the scores, without unit.

    Raises:
        NotCapturedError: The residual stream was not recorded.
        UnmeasuredError: The model is no Transformer, or something was changed in the run.
        IndexError: There is no such layer or head.
    """
    kind, trace = AttentionKind(kind), recorded(run)
    record, site = trace.layer(kind, layer, head), model.config.sites[kind]
    attention = multi_head(model, kind, layer)
    positions = model.stack(site.query_side).positions if site.own_keys else None
    sublayer = site.sublayer(layer)
    if split == "query" or site.own_keys:
        writers, found = parts(model, run, site.query_side, sublayer)
    else:
        writers, found = parts(model, run, site.key_side)
    linear = attention.k_proj if split == "key" else attention.q_proj
    split_up = rotated(positions, projected(linear, found, attention.n_heads, head))
    query, key = record.query[head].double(), record.key[head].double()
    scale = query.shape[-1] ** 0.5
    if split == "key":
        values = torch.einsum("qd,wkd->wqk", query, split_up) / scale
    else:
        values = torch.einsum("wqd,kd->wqk", split_up, key) / scale
    scores, bias = trace.scores(kind, layer, head), trace.bias(kind, layer, head)
    total = values.sum(0) + (0 if bias is None else torch.as_tensor(bias).double())
    largest = max(1.0, float(values.abs().max()))
    gap = float((total - torch.as_tensor(scores).double()).abs().max()) / largest
    check = Check("parts sum to the scores", gap, LIMIT)
    return Reading(writers, read_only(values.float()), AuditReport((check,), told=(_SUMS,), claim="sums up"))
