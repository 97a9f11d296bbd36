"""What keys carried, from what they read: x_j W_V W_O by the Gram matrix of W_O, weighed by the textbook."""

from __future__ import annotations

import numpy as np

from lenses.again.cells import equal
from lenses.again.plain import exactly, output_columns
from lenses.inside.weights import multi_head
from lenses.measures.stream import recorded
from transformer.model.network import Network
from transformer.model.sites import AttentionKind, PlacedHead
from transformer.runs.translation import NotCapturedError, Translation
from transformer.trace.audit import textbook_weights, visible
from transformer.trace.report import AuditReport
from transformer.trace.view import Array, HeadMap

LIMIT = 1e-4
"""Share of the largest length by which one may miss."""


def audit_carried(model: Network, run: Translation, view: HeadMap) -> AuditReport:
    """Whether the shares and lengths of a map are those of its cells; every cell is computed again."""
    norms, _ = carried_again(model, run, (view.kind, view.layer, view.head))
    part = view.window.queries, view.window.keys
    total = norms.sum(1, keepdims=True)
    shares = np.where(total > 0, norms / np.where(total > 0, total, 1.0), 0.0)[part]
    lengths = equal("carried", np.asarray(view.measured), norms[part], LIMIT)
    return lengths.joined(equal("shares carried", view.weights, shares, LIMIT))


def carried_again(model: Network, run: Translation, which: PlacedHead) -> tuple[Array, Array]:
    """(queries, keys) ‖α x W_V W_O‖ and (keys,) ‖x W_V W_O‖, float64."""
    kind, layer, head = which
    record, value = recorded(run).layer(kind, layer), exactly(multi_head(model, kind, layer).v_proj.weight)
    width = len(value) // model.config.n_heads
    own = read_by_keys(run, kind, layer) @ value[head * width : (head + 1) * width].T
    columns = output_columns(model, kind, layer, head)
    lengths = np.sqrt(np.einsum("kd,de,ke->k", own, columns.T @ columns, own).clip(0))
    rows = slice(0, record.shape[1])
    weights = exactly(textbook_weights(record, head, rows, visible(record, rows)))
    return np.abs(weights) * lengths, lengths


def read_by_keys(run: Translation, kind: AttentionKind, layer: int) -> Array:
    """(keys, d_model) float64: what keys and values are made of; NotCapturedError if it was not recorded."""
    trace, site = recorded(run), run.config.sites[kind]
    if site.own_keys:
        return exactly(run.stream(site.sublayer(layer)).read)
    if trace.memory is None:
        raise NotCapturedError("The encoder's output was not recorded; use Capture(residual=True).")
    return exactly(trace.memory.used)
