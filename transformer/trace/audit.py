"""Checks a trace: recomputes attention by the textbook formula and compares it with the model's real output.

Row sums of freshly computed softmax weights alone prove nothing. The proof is that the recomputed weights and
values reproduce the output that the fused kernel returned.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer.model.encodings.biases import ALL_HEADS
from transformer.model.sites import Place
from transformer.trace.records import AttentionTrace, LayerTrace
from transformer.trace.report import ROW_SUM_LIMIT, WEIGHT_LIMIT, AuditReport, Check
from transformer.trace.view import HeadView, Window

OUTPUT_LIMIT = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 2e-2}
LOG_PROB_LIMIT = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 2e-1, torch.bfloat16: 2e-1}
EMBEDDING_LIMIT = 1e-5
VIEW_LIMIT = 1e-5
CELLS = 1 << 20
"""Number of weights to recompute at a time, so that an audit of a long text needs little memory."""


def audit(
    trace: AttentionTrace,
    places: tuple[Place, ...],
    decoded: tuple[float, ...] = (),
    replayed: tuple[float, ...] = (),
) -> AuditReport:
    """Runs every check that a trace allows.

    Args:
        trace: What was recorded.
        places: The attention sub-layers to check.
        decoded: Log-probability of each output token when it was decoded, in nats.
        replayed: The same from an independent, uncached pass over the finished output.
    """
    limit = OUTPUT_LIMIT[trace.dtype]
    checks = [check for place in places for check in audit_layer(trace.layer(*place), limit)]
    checks += [audit_embedding(trace)]
    if decoded:
        checks += [audit_log_probs(decoded, replayed, LOG_PROB_LIMIT[trace.dtype])]
    return merged(checks)


def audit_layer(layer: LayerTrace, output_limit: float = OUTPUT_LIMIT[torch.float32]) -> list[Check]:
    """Row sums, exact zeros under the mask, and the output, over all heads and rows of one sub-layer."""
    row_sums = leaks = outputs = weights = 0.0
    scale = max(float(layer.value.abs().max()), 1e-30)
    heads, queries, keys = layer.shape
    chunk = max(1, CELLS // (heads * keys))
    for start in range(0, queries, chunk):
        rows = slice(start, min(start + chunk, queries))
        mask = visible(layer, rows)
        derived = layer.weights(ALL_HEADS, Window(rows.start, rows.stop, 0, keys))
        used = textbook_weights(layer, ALL_HEADS, rows, mask)
        row_sums = _worst(row_sums, _row_sum_error(derived, mask), _row_sum_error(used, mask))
        leaks = _worst(leaks, _largest(derived.masked_fill(mask, 0.0)))
        weights = _worst(weights, _largest(used - derived))
        outputs = _worst(outputs, _largest(used @ layer.value - layer.output[:, rows]) / scale)
    return [
        Check("row sums", row_sums, ROW_SUM_LIMIT),
        Check("masked weights", leaks, 0.0),
        Check("weights", weights, WEIGHT_LIMIT),
        Check("outputs", outputs, output_limit),
    ]


def visible(layer: LayerTrace, rows: slice) -> Tensor:
    """(rows, keys) bool: the mask, rebuilt from the padding and the causal rule."""
    keys = torch.arange(layer.shape[2]).expand(rows.stop - rows.start, -1)
    mask = keys <= torch.arange(rows.start, rows.stop)[:, None] if layer.causal else keys >= 0
    return mask if layer.key_padding is None else mask & layer.key_padding


def textbook_scores(layer: LayerTrace, heads: int | slice, rows: slice) -> Tensor:
    """Q Kᵀ / √d_k + bias (equation 1), before the mask; shaped as ``textbook_weights``."""
    query, key = layer.query[heads, rows], layer.key[heads]
    scores = torch.einsum("...qd,...kd->...qk", query, key) / query.shape[-1] ** 0.5
    if layer.bias is None:
        return scores
    places = torch.arange(rows.start, rows.stop), torch.arange(layer.shape[2])
    return scores + layer.bias.scores(query, *places, heads)


def textbook_weights(layer: LayerTrace, heads: int | slice, rows: slice, mask: Tensor) -> Tensor:
    """exp(s) / Σ exp(s) with s = Q Kᵀ / √d_k + bias (equation 1); rows that hooks replaced are as used.

    Returns:
        (rows, keys) for one head, (heads, rows, keys) for several.
    """
    scores = textbook_scores(layer, heads, rows)
    peak = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
    powers = torch.exp(scores - peak).where(mask, 0.0)
    weights = powers / powers.sum(-1, keepdim=True).clamp_min(1e-30)
    if layer.replaced_rows is not None and layer.replaced_weights is not None:
        changed = layer.replaced_rows[heads, rows, None]
        weights = torch.where(changed, layer.replaced_weights[heads, rows], weights)
    return weights


def audit_embedding(trace: AttentionTrace) -> Check:
    """Compares token embedding + positional encoding with the input that the first layer received."""
    worst = 0.0
    for embedding in trace.embeddings.values():
        total = embedding.tokens if embedding.positions is None else embedding.tokens + embedding.positions
        scale = max(1.0, float(embedding.input.abs().max()))
        worst = _worst(worst, float((total - embedding.input).abs().max()) / scale)
    limit = EMBEDDING_LIMIT if trace.dtype == torch.float32 else OUTPUT_LIMIT[trace.dtype]
    return Check("embeddings", worst, limit)


def audit_log_probs(decoded: tuple[float, ...], replayed: tuple[float, ...], limit: float) -> Check:
    """Compares log-probabilities of the decode with those of the replay, in nats."""
    if len(decoded) != len(replayed):
        return Check("log-probabilities", float("inf"), limit)
    worst = _worst(0.0, *(abs(a - b) for a, b in zip(decoded, replayed, strict=True)))
    return Check("log-probabilities", worst, limit)


def audit_view(view: HeadView, layer: LayerTrace) -> AuditReport:
    """Compares the very arrays that a figure receives with the trace: numbers, positions and labels."""
    rows, keys = view.window.queries, view.window.keys
    mask = visible(layer, rows)
    weights = textbook_weights(layer, view.head, rows, mask)[:, keys]
    expected = {
        "scores": textbook_scores(layer, view.head, rows)[:, keys].numpy(),
        "mask": mask[:, keys].numpy(),
        "weights": weights.numpy(),
        "query": layer.query[view.head, rows].numpy(),
        "key": layer.key[view.head, keys].numpy(),
        "value": layer.value[view.head, keys].numpy(),
        "output": layer.output[view.head, rows].numpy(),
    }
    differences = (_difference(getattr(view, name), array) for name, array in expected.items())
    predicted = len(view.query_tokens) if view.predicted_tokens is None else len(view.predicted_tokens)
    labels = (len(view.query_tokens), predicted, len(view.key_tokens)) != (
        view.weights.shape[0],
        view.weights.shape[0],
        view.weights.shape[-1],
    )
    return AuditReport(
        (
            Check("arrays drawn", _worst(0.0, *differences), VIEW_LIMIT),
            Check("labels", float(labels), 0.0),
        )
    )


def merged(checks: list[Check]) -> AuditReport:
    """One check per name, with the worst value."""
    worst: dict[str, Check] = {}
    for check in checks:
        kept = worst.get(check.name)
        if kept is None or (kept.value == kept.value and not check.value <= kept.value):
            worst[check.name] = check
    return AuditReport(tuple(worst.values()))


def _row_sum_error(weights: Tensor, mask: Tensor) -> float:
    return _largest(weights.sum(-1) - mask.any(-1).float())


def _largest(differences: Tensor) -> float:
    """Largest absolute value; NaN if there is a NaN."""
    return float(differences.abs().max()) if differences.numel() else 0.0


def _difference(drawn: NDArray[np.generic], expected: NDArray[np.generic]) -> float:
    if drawn.shape != expected.shape:
        return float("inf")
    scale = max(1.0, float(np.abs(expected.astype(np.float64)).max(initial=0.0)))
    return float(np.abs(drawn.astype(np.float64) - expected.astype(np.float64)).max(initial=0.0)) / scale


def _worst(*values: float) -> float:
    """The largest value; NaN if any value is NaN, because NaN is never within a limit."""
    return float("nan") if any(value != value for value in values) else max(values)
