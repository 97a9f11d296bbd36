"""Checks a trace: recomputes attention by the textbook formula and compares it with the model's real output.

Row sums of freshly computed softmax weights alone prove nothing. The proof is that the recomputed weights and
values reproduce the output that the fused kernel returned, and that the model, given these outputs, computes
in every layer, head and step the queries, keys and values that were recorded there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer.model.config import ModelConfig
from transformer.model.encodings.biases import ALL_HEADS
from transformer.model.network import Network
from transformer.model.scores import Additive
from transformer.model.sites import Place
from transformer.trace.binding import audit_places
from transformer.trace.entered import audit_entered
from transformer.trace.equations import (
    HEADS,
    OUTPUTS,
    HeadChange,
    additive_textbook,
    focused_textbook,
    masked_textbook,
    put_textbook,
    scored_textbook,
    weighed_textbook,
)
from transformer.trace.records import AttentionTrace, LayerTrace
from transformer.trace.report import ROW_SUM_LIMIT, WEIGHT_LIMIT, AuditReport, Check
from transformer.trace.stream import audit_stream, textbook_norm
from transformer.trace.view import Array, BoolArray, HeadLabels, HeadView, Window

OUTPUT_LIMIT = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 2e-2}
LOG_PROB_LIMIT = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 2e-1, torch.bfloat16: 2e-1}
EMBEDDING_LIMIT = 1e-5
VIEW_LIMIT = 1e-5
CELLS = 1 << 20
"""Number of weights to recompute at a time, so that an audit of a long text needs little memory."""


def audit(
    trace: AttentionTrace,  # what was recorded
    places: tuple[Place, ...],  # the attention sub-layers to check
    decoded: tuple[float, ...] = (),  # log-probability of each output token when it was decoded, in nats
    replayed: tuple[float, ...] = (),  # the same from an independent, uncached pass over the finished output
    # the model, or its config if there is no model; a changed run needs one of them, and only a model can
    # tell whether every recording belongs to its place
    basis: Network | ModelConfig | None = None,
) -> AuditReport:
    """Runs every check that a trace allows."""
    limit = OUTPUT_LIMIT[trace.dtype]
    checks = [check for place in places for check in audit_layer(trace.layer(*place), limit)]
    small = EMBEDDING_LIMIT if trace.dtype == torch.float32 else limit
    checks += [audit_embedding(trace, small)]
    entered: AuditReport = trace.once((audit_entered, basis), lambda: audit_entered(trace, basis, small))
    if decoded:
        checks += [audit_log_probs(decoded, replayed, LOG_PROB_LIMIT[trace.dtype])]
    if basis is not None:
        checks += trace.once((audit_stream, basis), lambda: audit_stream(trace, basis, limit))
    if isinstance(basis, Network):
        checks += trace.once((audit_places, basis), lambda: audit_places(trace, basis, limit))
    return replace(merged(checks), changes=tuple(map(str, trace.interventions))).joined(entered)


def audit_layer(layer: LayerTrace, output_limit: float = OUTPUT_LIMIT[torch.float32]) -> list[Check]:
    """Row sums, exact zeros under the mask, and the output, over all heads and rows of one sub-layer.

    A row sums to 1, or to 0 if it sees no key; in local attention to what the Gaussian leaves of it.
    """
    row_sums = leaks = outputs = weights = 0.0
    scale = max(float(layer.value.abs().max()), 1e-30)
    heads, queries, keys = layer.shape
    chunk = max(1, CELLS // (heads * keys))
    for start in range(0, queries, chunk):
        rows = slice(start, min(start + chunk, queries))
        mask = visible(layer, rows)
        derived = layer.weights(ALL_HEADS, Window(rows.start, rows.stop, 0, keys))
        used = textbook_weights(layer, ALL_HEADS, rows, mask)
        sums = mask.any(-1).float() if layer.focus is None else used.sum(-1)
        row_sums = _worst(row_sums, _largest(derived.sum(-1) - sums), _largest(used.sum(-1) - sums))
        leaks = _worst(leaks, _largest(derived.masked_fill(mask, 0.0)))
        weights = _worst(weights, _largest(used - derived))
        own = layer.output if layer.own_output is None else layer.own_output
        outputs = _worst(outputs, _largest(used @ layer.value - own[:, rows]) / scale)
    return [
        Check("row sums", row_sums, ROW_SUM_LIMIT),
        Check("masked weights", leaks, 0.0),
        Check("weights", weights, WEIGHT_LIMIT),
        Check(OUTPUTS, outputs, output_limit),
        *audit_heads(layer, output_limit),
    ]


def audit_heads(layer: LayerTrace, limit: float) -> list[Check]:
    """Compares what W_O received with what the layer's changes make of each head's own output."""
    acting = layer.changes is not None and layer.changes.changes_output
    if not acting and layer.own_output is None:
        return []
    if not acting or layer.own_output is None:
        return [Check(HEADS, float("inf"), limit)]
    own = layer.own_output.numpy()
    expected = np.stack([put_textbook(each, head_changes(layer, head)) for head, each in enumerate(own)])
    scale = max(float(np.abs(expected).max()), float(np.abs(own).max()), 1e-30)
    return [Check(HEADS, float(np.abs(expected - layer.output.numpy()).max()) / scale, limit)]


def head_changes(layer: LayerTrace, head: int) -> tuple[HeadChange, ...]:
    """Changes in one head, with the values that they put in."""
    found = () if layer.changes is None else layer.changes.heads.get(head, ())
    return tuple(
        (change, None if material is None else material.float().numpy()) for change, material in found
    )


def visible(layer: LayerTrace, rows: slice) -> Tensor:
    """(rows, keys) bool: the mask, rebuilt from the padding, the causal rule, and what changed it."""
    keys = torch.arange(layer.shape[2]).expand(rows.stop - rows.start, -1)
    mask = keys <= torch.arange(rows.start, rows.stop)[:, None] if layer.causal else keys >= 0
    mask = mask if layer.key_padding is None else mask & layer.key_padding
    if layer.focus is not None:
        mask = mask & torch.from_numpy(_focused(layer, rows)[0])
    if layer.changes is None:
        return mask
    return torch.from_numpy(masked_textbook(mask.numpy(), layer.changes.masks, rows.start))


def textbook_scores(layer: LayerTrace, heads: int | slice, rows: slice) -> Tensor:
    """Q Kᵀ / √d_k + bias (equation 1), or by the layer's rule, before the mask; as ``textbook_weights``."""
    query = layer.query[heads, rows]
    products = _products(layer, heads, rows)
    places = torch.arange(rows.start, rows.stop), torch.arange(layer.shape[2])
    bias = None if layer.bias is None else layer.bias.scores(query, *places, heads)
    own = query.shape[-1] ** 0.5 if layer.score.name == "scaled_dot" else 1.0
    scores = products / own
    scores = scores if bias is None else scores + bias
    if layer.changes is None:
        return scores
    divided = layer.bias is not None and layer.bias.divided

    def changed(head: int, at: At) -> Array:
        part = None if bias is None else bias[at].numpy()
        changes = head_changes(layer, head)
        return scored_textbook(products[at].numpy(), part, divided, own, changes)

    return _by_head(layer, heads, scores, changed)


def _products(layer: LayerTrace, heads: int | slice, rows: slice) -> Tensor:
    """(heads or none, rows, keys): q·k, or Σ v tanh(q + k) of additive scores."""
    query, key = layer.query[heads, rows], layer.key[heads]
    if isinstance(layer.score, Additive):
        vector = layer.score.vector[heads].numpy()
        return torch.from_numpy(additive_textbook(vector, query.numpy(), key.numpy()))
    return torch.einsum("...qd,...kd->...qk", query, key)


def _focused(layer: LayerTrace, rows: slice) -> tuple[BoolArray, Array]:
    """(rows, keys): window and Gaussian of local attention."""
    assert layer.focus is not None
    return focused_textbook(layer.focus.centres[rows].numpy(), layer.focus.reach, layer.shape[2])


def textbook_weights(layer: LayerTrace, heads: int | slice, rows: slice, mask: Tensor) -> Tensor:
    """exp(s) / Σ exp(s) with s = Q Kᵀ / √d_k + bias (equation 1); rows that hooks replaced are as used.

    Another rule gives other s, and local attention multiplies the quotient by a Gaussian.

    Returns:
        (rows, keys) for one head, (heads, rows, keys) for several.
    """
    scores = textbook_scores(layer, heads, rows)
    peak = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
    powers = torch.exp(scores - peak).where(mask, 0.0)
    weights = powers / powers.sum(-1, keepdim=True).clamp_min(1e-30)
    if layer.focus is not None:
        weights = weights * torch.from_numpy(_focused(layer, rows)[1])
    weights = _by_head(
        layer,
        heads,
        weights,
        lambda head, at: weighed_textbook(
            weights[at].numpy(), mask.numpy(), rows.start, head_changes(layer, head)
        ),
    )
    if layer.replaced_rows is not None and layer.replaced_weights is not None:
        changed = layer.replaced_rows[heads, rows, None]
        weights = torch.where(changed, layer.replaced_weights[heads, rows], weights)
    return weights


At = int | tuple[()]
"""Where a head stands in a tensor: its index, or the whole tensor."""


def _by_head(
    layer: LayerTrace, heads: int | slice, values: Tensor, changed: Callable[[int, At], Array]
) -> Tensor:
    """``values`` of one head or of all, with ``changed(head, at)`` in place of each changed head's."""
    if layer.changes is None:
        return values
    if isinstance(heads, int):
        return torch.from_numpy(changed(heads, ()))
    made = values.clone()
    for head in layer.changes.heads:
        made[head] = torch.from_numpy(changed(head, head))
    return made


def audit_embedding(trace: AttentionTrace, limit: float) -> Check:
    """Compares token embedding + positional encoding, or its norm, with the input of the first layer."""
    worst = 0.0
    for embedding in trace.embeddings.values():
        norm = embedding.norm
        total = embedding.sum if norm is None else textbook_norm(norm, embedding.sum)
        own = embedding.input if embedding.own_input is None else embedding.own_input
        scale = max(1.0, float(own.abs().max()))
        worst = _worst(worst, float((total - own).abs().max()) / scale)
    return Check("embeddings", worst, limit)


def audit_log_probs(decoded: tuple[float, ...], replayed: tuple[float, ...], limit: float) -> Check:
    """Compares log-probabilities of the decode with those of the replay, in nats."""
    if len(decoded) != len(replayed):
        return Check("log-probabilities", float("inf"), limit)
    worst = _worst(0.0, *(abs(a - b) for a, b in zip(decoded, replayed, strict=True)))
    return Check("log-probabilities", worst, limit)


def audit_view(view: HeadView, layer: LayerTrace, labels: HeadLabels | None = None) -> AuditReport:
    """Compares the very arrays and labels that a figure receives with those of the run."""
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
    drawn = HeadLabels(view.query_tokens, view.predicted_tokens, view.key_tokens)
    counts = (len(drawn.queries), len(drawn.predicted or drawn.queries), len(drawn.keys))
    wrong = counts != (view.weights.shape[0], view.weights.shape[0], view.weights.shape[-1])
    return AuditReport(
        (
            Check("arrays drawn", _worst(0.0, *differences), VIEW_LIMIT),
            Check("labels", float(wrong or (labels is not None and drawn != labels.of(view.window))), 0.0),
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
