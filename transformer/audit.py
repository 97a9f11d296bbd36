"""Checks that hold a trace against what the model really used (recomputed independently, in float64).

Row sums of weights that a softmax has just made prove nothing alone; what proves is the output that
the fused kernel returned, which recomputed weights and values must give again.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from .capture import AttentionTrace, AuditReport, Check, HeadView, LayerTrace, Window

ROW_SUM_LIMIT = 1e-5
WEIGHT_LIMIT = 1e-4
OUTPUT_LIMIT = {torch.float32: 1e-4, torch.bfloat16: 2e-2}
LOG_PROB_LIMIT = {torch.float32: 1e-4, torch.bfloat16: 2e-1}
EMBEDDING_LIMIT = 1e-5
VIEW_LIMIT = 1e-5
CHUNK = 256
"""Rows recomputed at a time, so that an audit of n tokens needs memory for CHUNK × n numbers."""

Float64 = NDArray[np.float64]


def audit(
    trace: AttentionTrace, decoded: tuple[float, ...] = (), replayed: tuple[float, ...] = ()
) -> AuditReport:
    """Runs every check that a trace allows.

    Args:
        trace: What was recorded.
        decoded: Log-probability of each output token when it was decoded, in nats.
        replayed: The same from an independent, uncached pass over the finished output.
    """
    checks = [
        check
        for layers in trace.layers.values()
        for layer in layers
        for check in audit_layer(layer, OUTPUT_LIMIT[trace.dtype])
    ]
    checks += [audit_embedding(trace)]
    if decoded:
        checks += [audit_log_probs(decoded, replayed, LOG_PROB_LIMIT[trace.dtype])]
    return merged(checks)


def audit_layer(layer: LayerTrace, output_limit: float = OUTPUT_LIMIT[torch.float32]) -> list[Check]:
    """Row sums, exact zeros under the mask, and the output, over all heads and rows of one sub-layer."""
    row_sums = leaks = outputs = weights = 0.0
    scale = max(float(layer.value.abs().max()), 1e-30)
    for head in range(layer.shape[0]):
        for start in range(0, layer.shape[1], CHUNK):
            rows = slice(start, min(start + CHUNK, layer.shape[1]))
            mask = visible(layer, rows)
            derived = _derived(layer, head, rows)
            used = textbook_weights(layer, head, rows, mask)
            row_sums = max(row_sums, _row_sum_error(derived, mask), _row_sum_error(used, mask))
            leaks = max(leaks, float(np.abs(derived[~mask]).max(initial=0.0)))
            output = used @ layer.value[head].numpy().astype(np.float64)
            difference = np.abs(output - layer.output[head, rows].numpy())
            outputs = _worst(outputs, float(difference.max(initial=0.0)) / scale)
            weights = _worst(weights, float(np.abs(used - derived).max(initial=0.0)))
    return [
        Check("row sums", row_sums, ROW_SUM_LIMIT),
        Check("masked weights", leaks, 0.0),
        Check("weights", weights, WEIGHT_LIMIT),
        Check("outputs", outputs, output_limit),
    ]


def visible(layer: LayerTrace, rows: slice) -> NDArray[np.bool_]:
    """(rows, keys) the mask, rebuilt from the padding and the causal rule."""
    keys = np.arange(layer.shape[2])
    mask = np.ones((rows.stop - rows.start, len(keys)), dtype=bool)
    if layer.causal:
        mask &= keys[None, :] <= np.arange(rows.start, rows.stop)[:, None]
    return mask if layer.key_padding is None else mask & layer.key_padding.numpy()[None, :]


def textbook_weights(layer: LayerTrace, head: int, rows: slice, mask: NDArray[np.bool_]) -> Float64:
    """softmax(Q Kᵀ / √d_k + bias) (equation 1) in float64; rows that hooks replaced as they were used."""
    query = layer.query[head, rows].numpy().astype(np.float64)
    key = layer.key[head].numpy().astype(np.float64)
    scores = query @ key.T / np.sqrt(query.shape[-1])
    if layer.bias is not None:
        bias = layer.bias.scores(torch.arange(rows.start, rows.stop), torch.arange(layer.shape[2]))
        scores = scores + bias[head].numpy()
    scores[~mask] = -np.inf
    peak = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    powers = np.exp(scores - np.where(np.isfinite(peak), peak, 0.0))
    total = powers.sum(axis=-1, keepdims=True)
    weights: Float64 = np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)
    if layer.replaced_rows is not None and layer.replaced_weights is not None:
        changed = layer.replaced_rows[head, rows].numpy()
        weights[changed] = layer.replaced_weights[head, rows].numpy()[changed]
    return weights


def audit_embedding(trace: AttentionTrace) -> Check:
    """Token embedding + positional encoding against the input that the first layer received."""
    worst = 0.0
    for embedding in trace.embeddings.values():
        total = embedding.tokens if embedding.positions is None else embedding.tokens + embedding.positions
        scale = max(1.0, float(embedding.input.abs().max()))
        worst = _worst(worst, float((total - embedding.input).abs().max()) / scale)
    limit = EMBEDDING_LIMIT if trace.dtype == torch.float32 else OUTPUT_LIMIT[trace.dtype]
    return Check("embeddings", worst, limit)


def audit_log_probs(decoded: tuple[float, ...], replayed: tuple[float, ...], limit: float) -> Check:
    """Log-probabilities while decoding against those of the replay, in nats."""
    if len(decoded) != len(replayed):
        return Check("log-probabilities", float("inf"), limit)
    worst = _worst(0.0, *(abs(a - b) for a, b in zip(decoded, replayed, strict=True)))
    return Check("log-probabilities", worst, limit)


def audit_view(view: HeadView, layer: LayerTrace) -> AuditReport:
    """Holds the very arrays that a figure receives against the trace: numbers, places and labels."""
    rows, keys = view.window.queries, view.window.keys
    mask = visible(layer, rows)
    weights = textbook_weights(layer, view.head, rows, mask)[:, keys]
    expected = {
        "mask": mask[:, keys],
        "weights": weights,
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
        if kept is None or kept.value != _worst(kept.value, check.value):
            worst[check.name] = check
    return AuditReport(tuple(worst.values()))


def _derived(layer: LayerTrace, head: int, rows: slice) -> Float64:
    part = Window(rows.start, rows.stop, 0, layer.shape[2])
    return layer.weights(head, part).numpy().astype(np.float64)


def _row_sum_error(weights: Float64, mask: NDArray[np.bool_]) -> float:
    expected = mask.any(axis=-1).astype(np.float64)
    return float(np.abs(weights.sum(axis=-1) - expected).max(initial=0.0))


def _difference(drawn: NDArray[np.generic], expected: NDArray[np.generic]) -> float:
    if drawn.shape != expected.shape:
        return float("inf")
    scale = max(1.0, float(np.abs(expected.astype(np.float64)).max(initial=0.0)))
    return float(np.abs(drawn.astype(np.float64) - expected.astype(np.float64)).max(initial=0.0)) / scale


def _worst(*values: float) -> float:
    """The largest; NaN, which is never within a limit, where any is NaN."""
    return float("nan") if any(value != value for value in values) else max(values)
