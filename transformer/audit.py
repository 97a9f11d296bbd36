"""Checks a trace: recomputes attention by the textbook formula and compares it with the model's real output.

Row sums of freshly computed softmax weights alone prove nothing. The proof is that the recomputed weights and
values reproduce the output that the fused kernel returned, and that the model, given these outputs, computes
in every layer, head and step the queries, keys and values that were recorded there. The labels of a picture
are tied to its numbers: a token is the row of its id in the table, times the config's scale (section 3.4),
and its position is the one that the model's table or formula has there (section 3.5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer import equations
from transformer import interventions as do
from transformer.config import ENCODINGS, ModelConfig, Place, PlacedHead, Side
from transformer.encodings import ALL_HEADS, Learned
from transformer.equations import HeadChange
from transformer.hooks import UNFUSED, Hooks
from transformer.interventions import Hide, InHeads, Mask
from transformer.model import EncoderDecoder, Network
from transformer.stream import SMALLEST_SCALE, audit_stream, difference, textbook_norm, worst
from transformer.trace import AttentionTrace, LayerTrace
from transformer.view import (
    LABELS_UNMADE,
    PLACES,
    PLACES_UNMADE,
    ROW_SUM_LIMIT,
    WEIGHT_LIMIT,
    Array,
    AuditReport,
    Check,
    HeadLabels,
    HeadView,
    Window,
    read_only,
)

OUTPUTS, HEADS, TOKENS = "outputs", "changed heads", "changed tokens"
OUTPUT_LIMIT = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 2e-2}
LOG_PROB_LIMIT = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 2e-1, torch.bfloat16: 2e-1}
EMBEDDING_LIMIT = 1e-5
VIEW_LIMIT = 1e-5
CELLS = 1 << 20
"""Number of weights to recompute at a time, so that an audit of a long text needs little memory."""
POSITIONS_UNMADE = "whether the positions are those of the model's table"
Basis = Network | ModelConfig | None
"""The model; or its config if there is no model, as of a file."""


def audit(
    trace: AttentionTrace,  # what was recorded
    places: tuple[Place, ...],  # the attention sub-layers to check
    decoded: tuple[float, ...] = (),  # log-probability of each output token when it was decoded, in nats
    replayed: tuple[float, ...] = (),  # the same from an independent, uncached pass over the finished output
    # a changed run needs a basis, and only a model can tell whether every recording belongs to its place
    basis: Basis = None,
) -> AuditReport:
    """Runs every check that a trace allows."""
    limit = OUTPUT_LIMIT[trace.dtype]
    small = EMBEDDING_LIMIT if trace.dtype == torch.float32 else limit
    hooked = any(name.rpartition(".")[2] not in UNFUSED for name in trace.functions)
    checks = list[Check]()
    for kind, layer in places:
        heads = f"{trace.config.sites[kind].sublayer(layer).path}.heads"
        checks += audit_layer(trace.layer(kind, layer), limit, heads in trace.functions)
    checks.append(audit_embedding(trace, small))
    entered: AuditReport = trace.once((audit_entered, basis), lambda: audit_entered(trace, basis, small))
    if decoded:
        checks.append(audit_log_probs(decoded, replayed, LOG_PROB_LIMIT[trace.dtype]))
    if basis is not None and not hooked:
        checks += trace.once((audit_stream, basis), lambda: audit_stream(trace, basis, limit))
    if isinstance(basis, Network) and not hooked:
        checks += trace.once((audit_places, basis), lambda: audit_places(trace, basis, limit))
    unknown = " (so places and the stream were not checked)" * hooked
    functions = (f"a function of yours acts at {name}{unknown}" for name in trace.functions)
    changes = (*map(str, trace.interventions), *functions)
    return AuditReport(merged(checks).checks, changes).joined(entered)


def audit_layer(layer: LayerTrace, limit: float = 1e-4, hooked: bool = False) -> list[Check]:
    """Row sums, exact zeros under the mask, and the output, over all heads and rows of one sub-layer.

    A row sums to 1, or to 0 if it sees no key; in local attention to what the Gaussian leaves of it.
    ``hooked`` says that a user's function put in the outputs of heads, which no equation knows.
    """
    row_sums = leaks = outputs = weights = 0.0
    scale = max(float(layer.value.abs().max()), 1e-30)
    heads, queries, keys = layer.shape
    own = layer.output if layer.own_output is None else layer.own_output
    chunk = max(1, CELLS // (heads * keys))
    for start in range(0, queries, chunk):
        rows = slice(start, min(start + chunk, queries))
        textbook = Textbook(layer, ALL_HEADS, rows)
        mask, used = textbook.mask, textbook.weights
        derived = layer.weights(ALL_HEADS, Window(rows.start, rows.stop, 0, keys))
        sums = mask.any(-1).float() if layer.focus is None else used.sum(-1)
        row_sums = worst(row_sums, _largest(derived.sum(-1) - sums), _largest(used.sum(-1) - sums))
        leaks = worst(leaks, _largest(derived.masked_fill(mask, 0.0)))
        weights = worst(weights, _largest(used - derived))
        outputs = worst(outputs, _largest(used @ layer.value - own[:, rows]) / scale)
    checks = [
        Check("row sums", row_sums, ROW_SUM_LIMIT),
        Check("masked weights", leaks, 0.0),
        Check("weights", weights, WEIGHT_LIMIT),
        Check(OUTPUTS, outputs, limit),
    ]
    return checks if hooked else [*checks, *audit_heads(layer, limit)]


def audit_heads(layer: LayerTrace, limit: float) -> list[Check]:
    """Compares what W_O received with what the layer's changes make of each head's own output."""
    acting = any(each.value.part == "heads" for each in layer.changes)
    if not acting and layer.own_output is None:
        return []
    if not acting or layer.own_output is None:
        return [Check(HEADS, math.inf, limit)]
    own = layer.own_output.numpy()
    changed = [equations.put_textbook(each, head_changes(layer, head)) for head, each in enumerate(own)]
    expected = np.stack(changed)
    scale = max(float(np.abs(expected).max()), float(np.abs(own).max()), 1e-30)
    return [Check(HEADS, float(np.abs(expected - layer.output.numpy()).max()) / scale, limit)]


def head_changes(layer: LayerTrace, head: int) -> list[HeadChange]:
    """Changes in one head, with the values that they put in."""
    pairs = list[HeadChange]()
    for each in layer.changes:
        heads = each.value.heads_of(layer.kind, layer.number, layer.shape[0])
        if head in heads:
            material = each.material
            if material is not None and isinstance(each.value, InHeads):
                material = material[heads.index(head)]
            pairs.append((each.value, None if material is None else material.float().numpy()))
    return pairs


class Textbook:
    """Equation 1 for some rows of one head, or of all (``ALL_HEADS``), step by step.

    Attributes:
        mask: (rows, keys) bool, rebuilt from the padding, the causal rule, and what changed it.
        scores: (rows, keys) or (heads, rows, keys) Q Kᵀ / √d_k + bias, or by the layer's rule.
        weights: exp(s) / Σ exp(s) over the visible keys, in local attention times a Gaussian; rows that a
            user's function replaced are as used.
    """

    def __init__(self, layer: LayerTrace, heads: int | slice, rows: slice) -> None:
        self.layer, self.heads, self.rows = layer, heads, rows
        query, key = layer.query[heads, rows], layer.key[heads]
        places = torch.arange(rows.start, rows.stop), torch.arange(layer.shape[2])
        self.window = None
        if layer.focus is not None:
            centres = layer.focus.centres[rows].numpy()
            self.window = equations.focused_textbook(centres, layer.focus.half_width, layer.shape[2])
        self.mask = self._mask(*places)
        if layer.score.vector is None:
            products = torch.einsum("...qd,...kd->...qk", query, key)
        else:
            vector = layer.score.vector[heads].numpy()
            products = torch.from_numpy(equations.additive_textbook(vector, query.numpy(), key.numpy()))
        bias = None if layer.bias is None else layer.bias.scores(query, *places, heads)
        self.scores = self._scores(products, bias)
        self.weights = self._weights()

    def _mask(self, rows: Tensor, keys: Tensor) -> Tensor:
        layer, columns = self.layer, keys.expand(len(rows), -1)
        if layer.used_mask is not None:
            return layer.used_mask[self.rows]
        mask = columns <= rows[:, None] if layer.causal else columns >= 0
        mask = mask if layer.key_padding is None else mask & layer.key_padding
        if self.window is not None:
            mask = mask & torch.from_numpy(self.window[0])
        masks = [each.value for each in layer.changes if isinstance(each.value, Hide | Mask)]
        return torch.from_numpy(equations.masked_textbook(mask.numpy(), masks, self.rows.start))

    def _scores(self, products: Tensor, bias: Tensor | None) -> Tensor:
        layer = self.layer
        divisor = layer.query.shape[-1] ** 0.5 if layer.score.name == "scaled_dot" else 1.0
        scores = products / divisor
        scores = scores if bias is None else scores + bias
        divided = layer.bias is not None and layer.bias.divided

        def changed(at: int | tuple[()], changes: Sequence[HeadChange]) -> Array:
            part = None if bias is None else bias[at].numpy()
            return equations.scored_textbook(products[at].numpy(), part, divided, divisor, changes)

        return self._by_head(scores, changed)

    def _weights(self) -> Tensor:
        layer, mask, scores = self.layer, self.mask, self.scores
        peak = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
        powers = torch.exp(scores - peak).where(mask, 0.0)
        weights = powers / powers.sum(-1, keepdim=True).clamp_min(1e-30)
        if self.window is not None:
            weights = weights * torch.from_numpy(self.window[1])

        def changed(at: int | tuple[()], changes: Sequence[HeadChange]) -> Array:
            return equations.weighed_textbook(weights[at].numpy(), mask.numpy(), self.rows.start, changes)

        weights = self._by_head(weights, changed)
        if layer.used_weights is None:
            return weights
        replaced = layer.replaced_rows[self.heads, self.rows, None]
        return torch.where(replaced, layer.used_weights[self.heads, self.rows], weights)

    def _by_head(
        self, values: Tensor, changed: Callable[[int | tuple[()], Sequence[HeadChange]], Array]
    ) -> Tensor:
        """Values of one head or of all, with those of each changed head as its changes make them."""
        if isinstance(self.heads, int):
            changes = head_changes(self.layer, self.heads)
            return torch.from_numpy(changed((), changes)) if changes else values
        heads = {
            head: head_changes(self.layer, head)
            for head in range(self.layer.shape[0] * bool(self.layer.changes))
        }
        values = values.clone() if any(heads.values()) else values
        for head, changes in heads.items():
            if changes:
                values[head] = torch.from_numpy(changed(head, changes))
        return values


def audit_embedding(trace: AttentionTrace, limit: float) -> Check:
    """Compares token embedding + positional encoding, or its norm, with the input of the first layer."""
    largest = 0.0
    for embedding in trace.embeddings.values():
        norm = embedding.norm
        total = embedding.sum if norm is None else textbook_norm(norm, embedding.sum)
        own = embedding.input if embedding.own_input is None else embedding.own_input
        largest = worst(largest, difference(total, own, 1.0))
    return Check("embeddings", largest, limit)


def audit_log_probs(decoded: tuple[float, ...], replayed: tuple[float, ...], limit: float) -> Check:
    """Compares log-probabilities of the decode with those of the replay, in nats."""
    if len(decoded) != len(replayed):
        return Check("log-probabilities", math.inf, limit)
    largest = worst(0.0, *(abs(a - b) for a, b in zip(decoded, replayed, strict=True)))
    return Check("log-probabilities", largest, limit)


def audit_view(view: HeadView, layer: LayerTrace, labels: HeadLabels | None = None) -> AuditReport:
    """Compares the very arrays and labels that a figure receives with those of the run."""
    rows, keys = view.window.queries, view.window.keys
    textbook = Textbook(layer, view.head, rows)
    expected = {
        "scores": textbook.scores[:, keys],
        "mask": textbook.mask[:, keys],
        "weights": textbook.weights[:, keys],
        "query": layer.query[view.head, rows],
        "key": layer.key[view.head, keys],
        "value": layer.value[view.head, keys],
        "output": layer.output[view.head, rows],
    }
    differences = (_array_difference(getattr(view, name), array.numpy()) for name, array in expected.items())
    drawn = HeadLabels(view.query_tokens, view.predicted_tokens, view.key_tokens)
    counts = (len(drawn.queries), len(drawn.predicted or drawn.queries), len(drawn.keys))
    wrong = counts != (view.weights.shape[0], view.weights.shape[0], view.weights.shape[-1])
    return AuditReport(
        (
            Check("arrays drawn", worst(0.0, *differences), VIEW_LIMIT),
            Check("labels", float(wrong or (labels is not None and drawn != labels.of(view.window))), 0.0),
        )
    )


def head_view(
    trace: AttentionTrace,
    place: PlacedHead,
    labels: HeadLabels,
    model: tuple[str, str],
    window: Window | None = None,
) -> HeadView:
    """One head as arrays, audited.

    Args:
        place: The head.
        labels: Tokens of the whole map.
        model: Name of the model, and "pre", "post" or "none".
        window: The part of the map; None for all of it.

    Raises:
        IndexError: There is no such layer or head, or the window leaves the map.
    """
    kind, layer, head = place
    record = trace.layer(kind, layer, head)
    whole = record.window()
    window = window or whole
    if not (
        0 <= window.query_start < window.query_stop <= whole.query_stop
        and 0 <= window.key_start < window.key_stop <= whole.key_stop
    ):
        cells = f"{whole.query_stop} × {whole.key_stop}"
        raise IndexError(f"The window {window} leaves the map of {cells} cells.")
    rows, keys, drawn = window.queries, window.keys, labels.of(window)
    view = HeadView(
        *(*place, *model, drawn.queries, drawn.predicted, drawn.keys, window),
        scores=trace.scores(*place, window),
        mask=trace.mask(*place, window),
        weights=trace.weights(*place, window),
        query=read_only(record.query[head, rows]),
        key=read_only(record.key[head, keys]),
        value=read_only(record.value[head, keys]),
        output=read_only(record.output[head, rows]),
        audit=AuditReport(()),
        score=record.score.name,
        centres=None if record.focus is None else read_only(record.focus.centres[rows]),
        reach=0 if record.focus is None else record.focus.half_width,
    )
    checks = trace.audit((kind, layer)).joined(audit_view(view, record, trace.labels(kind)))
    return replace(view, audit=checks)


def audit_entered(trace: AttentionTrace, basis: Basis, limit: float) -> AuditReport:
    """Compares token embeddings with table[id] × scale, and positions with their table or formula."""
    model = basis if isinstance(basis, Network) else None
    config = basis.config if isinstance(basis, Network) else basis
    checks, unmade = list[Check](), [] if model is not None else [LABELS_UNMADE, PLACES_UNMADE]
    hooked = {name.partition(".")[0] for name in trace.functions if name.endswith((".tokens", ".positions"))}
    sides = [side for side in trace.embeddings if side not in hooked]
    if model is not None and trace.tokens:
        checks.append(Check("tokens", worst(0.0, *(_tokens(trace, model, side) for side in sides)), limit))
    if config is not None and ENCODINGS[config.positions].acts == "embeddings":
        differences = [_positions(trace, model, config, side) for side in sides]
        known = [each for each in differences if each is not None]
        unmade += [POSITIONS_UNMADE] if len(known) < len(differences) else []
        checks += [Check("positions", worst(*known), limit)] if known else []
    return AuditReport(tuple(checks), unmade=tuple(unmade))


def _tokens(trace: AttentionTrace, model: Network, side: Side) -> float:
    """Largest difference between a side's token embeddings and the rows of its ids."""
    ids, table = torch.tensor(trace.tokens[side].ids), model.table(side).weight.detach()
    known = ids < len(table)
    rows = table[ids.where(known, 0).to(table.device)].double().cpu() * known[:, None]
    return difference(trace.embeddings[side].tokens, rows * model.config.embedding_scale, 1.0)


def _positions(trace: AttentionTrace, model: Network | None, config: ModelConfig, side: Side) -> float | None:
    """The same of the positions; None if their table is not here."""
    bare = any(isinstance(each, do.NoPositions) and each.side == side for each in trace.interventions)
    recorded = trace.embeddings[side].positions
    if bare or recorded is None:
        return 0.0 if bare and recorded is None else math.inf
    first = trace.tokens[side].first if trace.tokens else 0
    if config.positions == "sinusoidal":
        formula = torch.from_numpy(equations.sinusoids(config, first, len(recorded)))
        # A file of 16 bits may hold the table, rounded.
        rounded = [formula, formula.bfloat16().double(), formula.half().double()]
        return min(difference(recorded, each, 1.0) for each in rounded)
    encoding = None if model is None else model.stack(side).positions
    if not isinstance(encoding, Learned):
        return None
    return difference(recorded, encoding.table[first : first + len(recorded)].detach().double().cpu(), 1.0)


@torch.inference_mode()
def audit_places(trace: AttentionTrace, model: Network, limit: float) -> list[Check]:
    """Binds each recording to its place: a second pass of the model, with the recordings as answers.

    Each attention of a trace may be consistent by itself even if two heads, two layers or two steps have
    changed places. If every attention returns its recorded output, the model must compute at every place the
    queries, keys and values that were recorded there.

    Returns:
        One check; none if the residual stream was changed, which the audit of the stream proves. A model
        without sub-layers has no stream, and its changed inputs and memory are answers like all others.
    """
    stream = any(stack.passed() for stack in model.config.stacks.values())
    if stream and any(value.part == "stream" for value in trace.interventions):
        return []
    device = model.embedding.weight.device

    def answer(name: str) -> Callable[[Tensor, object], Tensor]:
        return lambda own, at: trace.tensors[name][None].to(own)

    sides = tuple(trace.embeddings)
    answers = [f"{side}.input" for side in sides] + ["encoder.output"] * (trace.memory is not None)
    answers += [f"{model.config.sites[kind].sublayer(layer).path}.heads" for kind, layer in trace.places]
    parts = {"query", "key", "value", "encoder.output"}
    hooks = Hooks(parts, {name: [answer(name)] for name in answers})
    ids = {
        side: torch.full((1, len(trace.embeddings[side].input)), model.config.eos_id, device=device)
        for side in sides
    }
    padding = next((each for name, each in trace.tensors.items() if name.endswith("attention.padding")), None)
    if isinstance(model, EncoderDecoder):
        mask = None if padding is None else padding[None].to(device)
        memory = model.encode(ids["encoder"], mask, hooks)
        if "decoder" in sides:
            model.decode(ids["decoder"], memory, mask, hooks=hooks)
    else:
        model.features(*ids.values(), hooks=hooks)
    largest = 0.0
    for name in hooks.recorded:
        part = name.rpartition(".")[2]
        if part in ("padding", "bias", "gain", "shift") or name == "encoder.output":
            continue
        again = hooks.values(name).float().cpu()
        again = again if part == "vector" else again[0, 0] if part == "centres" else again[0]
        name = name.removesuffix(".own") if name not in trace.tensors else name
        largest = worst(largest, difference(again, trace.tensors.get(name), SMALLEST_SCALE))
    return [Check(PLACES, largest, limit)]


def merged(checks: Sequence[Check]) -> AuditReport:
    """One check per name, with the worst value."""
    by_name: dict[str, Check] = {}
    for check in checks:
        before = by_name.get(check.name)
        if before is None or (before.value == before.value and not check.value <= before.value):
            by_name[check.name] = check
    return AuditReport(tuple(by_name.values()))


def _largest(differences: Tensor) -> float:
    """Largest absolute value; NaN if there is a NaN."""
    return float(differences.abs().max()) if differences.numel() else 0.0


def _array_difference(drawn: NDArray[np.generic], expected: NDArray[np.generic]) -> float:
    if drawn.shape != expected.shape:
        return math.inf
    scale = max(1.0, float(np.abs(expected.astype(np.float64)).max(initial=0.0)))
    return float(np.abs(drawn.astype(np.float64) - expected.astype(np.float64)).max(initial=0.0)) / scale
