"""Checks a trace: recomputes attention by the textbook formula and compares it with the model's real output.

Row sums of freshly computed softmax weights alone prove nothing. The proof is that the recomputed weights and
values reproduce the output that the fused kernel returned, and that the model, given these outputs, computes
in every layer, head and step the queries, keys and values that were recorded there. The labels of a picture
are tied to its numbers: a token is the row of its id in the table, times the config's scale (section 3.4),
and its position is the one that the model's table or formula has there (section 3.5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from transformer import equations
from transformer import interventions as do
from transformer.config import ENCODINGS, ModelConfig, Place, Side, Sublayer
from transformer.encodings import ALL_HEADS, Learned, Rotary
from transformer.equations import HeadChange
from transformer.hooks import Hooks
from transformer.interventions.edits import patched_name
from transformer.interventions.heads import InAttention, InHeads
from transformer.interventions.masks import Masking
from transformer.layers import StreamNorm, centred, shift, spread
from transformer.model import EncoderDecoder, Network
from transformer.trace import AttentionTrace, LayerTrace, ResidualTrace
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
)

OUTPUTS, HEADS, STREAM, TOKENS = "outputs", "changed heads", "residual stream", "changed tokens"
OUTPUT_LIMIT = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 2e-2}
LOG_PROB_LIMIT = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 2e-1, torch.bfloat16: 2e-1}
EMBEDDING_LIMIT = 1e-5
VIEW_LIMIT = 1e-5
CELLS = 1 << 20
"""Number of weights to recompute at a time, so that an audit of a long text needs little memory."""
SMALLEST_SCALE = 1e-2
"""Differences are divided by the largest number, or by this value if it is larger."""
POSITIONS_UNMADE = "whether the positions are those of the model's table"
HOOKED = "what a hook of the user put in"
Basis = Network | ModelConfig | None
"""The model; or its config if there is no model, as of a file."""
Pair = tuple[Tensor | None, Tensor | None]
"""A recorded tensor, and what it must be; None on one side only is a contradiction."""


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
    hooked = any(name.rpartition(".")[2] not in ("mask", "scores", "weights") for name in trace.functions)
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
    changes = tuple(map(str, trace.interventions))
    unmade = (HOOKED,) if hooked else ()
    return AuditReport(merged(checks).checks, changes, unmade=unmade).joined(entered)


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
        row_sums = _worst(row_sums, _largest(derived.sum(-1) - sums), _largest(used.sum(-1) - sums))
        leaks = _worst(leaks, _largest(derived.masked_fill(mask, 0.0)))
        weights = _worst(weights, _largest(used - derived))
        outputs = _worst(outputs, _largest(used @ layer.value - own[:, rows]) / scale)
    checks = [
        Check("row sums", row_sums, ROW_SUM_LIMIT),
        Check("masked weights", leaks, 0.0),
        Check("weights", weights, WEIGHT_LIMIT),
        Check(OUTPUTS, outputs, limit),
    ]
    return checks if hooked else [*checks, *audit_heads(layer, limit)]


def audit_heads(layer: LayerTrace, limit: float) -> list[Check]:
    """Compares what W_O received with what the layer's changes make of each head's own output."""
    acting = any(
        isinstance(each.value, InAttention) and each.value.acts_on == "output" for each in layer.changes
    )
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
        if not isinstance(each.value, InAttention):
            continue
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
        mask = columns <= rows[:, None] if layer.causal else columns >= 0
        mask = mask if layer.key_padding is None else mask & layer.key_padding
        if self.window is not None:
            mask = mask & torch.from_numpy(self.window[0])
        masks = [each.value for each in layer.changes if isinstance(each.value, Masking)]
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
    worst = 0.0
    for embedding in trace.embeddings.values():
        norm = embedding.norm
        total = embedding.sum if norm is None else textbook_norm(norm, embedding.sum)
        own = embedding.input if embedding.own_input is None else embedding.own_input
        worst = _worst(worst, _difference(total, own, 1.0))
    return Check("embeddings", worst, limit)


def audit_log_probs(decoded: tuple[float, ...], replayed: tuple[float, ...], limit: float) -> Check:
    """Compares log-probabilities of the decode with those of the replay, in nats."""
    if len(decoded) != len(replayed):
        return Check("log-probabilities", math.inf, limit)
    worst = _worst(0.0, *(abs(a - b) for a, b in zip(decoded, replayed, strict=True)))
    return Check("log-probabilities", worst, limit)


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
            Check("arrays drawn", _worst(0.0, *differences), VIEW_LIMIT),
            Check("labels", float(wrong or (labels is not None and drawn != labels.of(view.window))), 0.0),
        )
    )


def audit_entered(trace: AttentionTrace, basis: Basis, limit: float) -> AuditReport:
    """Compares token embeddings with table[id] × scale, and positions with their table or formula."""
    model = basis if isinstance(basis, Network) else None
    config = basis.config if isinstance(basis, Network) else basis
    checks, unmade = list[Check](), [] if model is not None else [LABELS_UNMADE, PLACES_UNMADE]
    hooked = {name.partition(".")[0] for name in trace.functions if name.endswith((".tokens", ".positions"))}
    sides = [side for side in trace.embeddings if side not in hooked]
    if model is not None and trace.tokens:
        checks.append(Check("tokens", _worst(0.0, *(_tokens(trace, model, side) for side in sides)), limit))
    if config is not None and ENCODINGS[config.positions].acts == "embeddings":
        differences = [_positions(trace, model, config, side) for side in sides]
        known = [each for each in differences if each is not None]
        unmade += [POSITIONS_UNMADE] if len(known) < len(differences) else []
        checks += [Check("positions", _worst(*known), limit)] if known else []
    return AuditReport(tuple(checks), unmade=tuple(unmade))


def _tokens(trace: AttentionTrace, model: Network, side: Side) -> float:
    """Largest difference between a side's token embeddings and the rows of its ids."""
    ids, table = torch.tensor(trace.tokens[side].ids), model.table(side).weight.detach()
    known = ids < len(table)
    rows = table[ids.where(known, 0).to(table.device)].double().cpu() * known[:, None]
    return _difference(trace.embeddings[side].tokens, rows * model.config.embedding_scale, 1.0)


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
        return min(_difference(recorded, each, 1.0) for each in rounded)
    encoding = None if model is None else model.stack(side).positions
    if not isinstance(encoding, Learned):
        return None
    return _difference(recorded, encoding.table[first : first + len(recorded)].detach().double().cpu(), 1.0)


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
    if stream and any(value.needs_stream for value in trace.interventions):
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
    worst = 0.0
    for name in hooks.recorded:
        part = name.rpartition(".")[2]
        if part in ("padding", "bias", "gain", "shift") or name == "encoder.output":
            continue
        again = hooks.values(name).float().cpu()
        again = again if part == "vector" else again[0, 0] if part == "centres" else again[0]
        name = name.removesuffix(".own") if name not in trace.tensors else name
        worst = _worst(worst, _difference(again, trace.tensors.get(name), SMALLEST_SCALE))
    return [Check(PLACES, worst, limit)]


def audit_stream(trace: AttentionTrace, basis: Network | ModelConfig, limit: float) -> list[Check]:
    """Compares a recorded stream with the model's equations, and with those of the run's changes.

    Without the model, a file's stream is checked wherever no LayerNorm and no projection stands between two
    recorded tensors; with the model, everywhere.

    Returns:
        One check; none if the stream was not recorded, and nothing was changed that it must show.
    """
    stacks = (basis.config if isinstance(basis, Network) else basis).stacks
    unrecorded = not trace.residuals and any(stack.passed() for stack in stacks.values())
    if unrecorded or (trace.memory is None and "encoder" in stacks):
        marked = any(name.endswith((".input.own", ".output.own", ".stream.own")) for name in trace.tensors)
        needed = marked or any(value.needs_stream for value in trace.interventions)
        return [Check(STREAM, math.inf, limit)] if needed else []
    worst = [_difference(*pair, SMALLEST_SCALE) for pair in _Stream(trace, basis).pairs()]
    return [Check(STREAM, _worst(0.0, *worst), limit)]


class _Stream:
    """The equations of one run's stream."""

    def __init__(self, trace: AttentionTrace, basis: Network | ModelConfig) -> None:
        self.trace = trace
        self.model = basis if isinstance(basis, Network) else None
        self.config = basis.config if isinstance(basis, Network) else basis
        self.values = trace.interventions
        self.bare = {value.side for value in self.values if isinstance(value, do.NoPositions)}
        self.dropped = {value.sublayer for value in self.values if isinstance(value, do.DropSublayer)}
        self.unnormed = {value.place for value in self.values if isinstance(value, do.DropNorm)}

    def pairs(self) -> Iterator[Pair]:
        """Every pair of tensors that must be equal."""
        for side, embedding in self.trace.embeddings.items():
            yield from self._patched(f"{side}.input", embedding.own_input, embedding.input)
            added = ENCODINGS[self.config.positions].acts == "embeddings" and side not in self.bare
            yield _present(added), _present(embedding.positions is not None)
            if side in self.bare:
                yield from self._bare(side)
        before = {side: embedding.input for side, embedding in self.trace.embeddings.items()}
        for sublayer, residual in self.trace.residuals.items():
            yield from self._passing(sublayer, residual)
            before[sublayer.side] = residual.output
        if (memory := self.trace.memory) is not None:
            own = self.trace.tensors.get("encoder.output.own")
            if self.config.stacks["encoder"].passed():  # a recurrent memory is no stream: see `audit_places`
                yield from self._left(memory if own is None else own, before["encoder"])
            yield from self._patched("encoder.output", own, memory)

    def _bare(self, side: Side) -> Iterator[Pair]:
        """No bias, and q = x W_Q + b_Q without a rotation, which needs the model."""
        for kind, site in self.config.sites.items():
            for layer, record in enumerate(self.trace.layers[kind]):
                if not site.own_keys or site.query_side != side:
                    continue
                yield _present(record.bias is not None), None
                if self.model is None or not isinstance(self.model.stack(side).positions, Rotary):
                    continue
                maps = getattr(self.model.layer(side, layer), site.name).q_proj
                weight, bias = (part.detach().float().cpu() for part in (maps.weight, shift(maps)))
                queries = self.trace.residuals[site.sublayer(layer)].read @ weight.T + bias
                yield record.query, queries.view(len(queries), len(record.query), -1).transpose(0, 1)

    def _passing(self, sublayer: Sublayer, residual: ResidualTrace) -> Iterator[Pair]:
        norm = None if self.model is None else self.model.residual(sublayer).norm
        total = residual.stream + residual.update
        after = residual.output if residual.own_output is None else residual.own_output
        if self.config.norm == "pre":
            yield from self._normed(sublayer, norm, residual.stream, residual.read)
            yield after, total
        else:
            yield residual.read, residual.stream
            yield from self._normed(sublayer, norm, total, after)
        dropped = torch.zeros_like(residual.update) if sublayer in self.dropped else residual.update
        yield residual.update, dropped
        yield None if residual.own_update is None else dropped, dropped if sublayer in self.dropped else None
        yield from self._patched(f"{sublayer.path}.stream", residual.own_output, residual.output)

    def _left(self, own: Tensor, last: Tensor) -> Iterator[Pair]:
        """Output of the encoder, computed from its last stream."""
        if self.config.norm == "pre":
            norm = None if self.model is None else self.model.stack("encoder").final_norm
            yield from self._normed("encoder", norm, last, own)
        else:
            yield own, last

    def _normed(
        self, place: Sublayer | Side, norm: nn.Module | None, before: Tensor, after: Tensor
    ) -> Iterator[Pair]:
        """After = norm(before), or before itself if the norm is left out."""
        if place in self.unnormed:
            yield after, before
        elif isinstance(norm, StreamNorm):
            yield after, textbook_norm(norm, before)

    def _patched(self, name: str, own: Tensor | None, used: Tensor) -> Iterator[Pair]:
        patches = [
            (change.value, change.material)
            for change in self.trace.changes
            if isinstance(change.value, do.Patch) and patched_name(change.value.place) == name
        ]
        if not patches:
            yield own, None
            return
        yield None if own is None else used, used
        expected = (used if own is None else own).numpy()
        for patch, material in patches:
            array = None if material is None else material.float().numpy()
            expected = equations.patched_textbook(expected, patch, array)
        yield used, torch.from_numpy(expected)


def textbook_norm(norm: StreamNorm, x: Tensor) -> Tensor:
    """γ (x − μ) / √(σ² + ε) + β over the last axis, in float64 (Ba et al. 2016). RMSNorm: no μ, β."""
    x = x.double()
    weight, bias = (part.detach().double().cpu() for part in (norm.weight, shift(norm)))
    normed: Tensor = weight * centred(norm, x) / spread(norm, x) + bias
    return normed


def merged(checks: Sequence[Check]) -> AuditReport:
    """One check per name, with the worst value."""
    worst: dict[str, Check] = {}
    for check in checks:
        before = worst.get(check.name)
        if before is None or (before.value == before.value and not check.value <= before.value):
            worst[check.name] = check
    return AuditReport(tuple(worst.values()))


def _present(there: bool) -> Tensor | None:
    """A tensor if something is there, else None, so that presence can be compared."""
    return torch.zeros(1) if there else None


def _largest(differences: Tensor) -> float:
    """Largest absolute value; NaN if there is a NaN."""
    return float(differences.abs().max()) if differences.numel() else 0.0


def _difference(recorded: Tensor | None, expected: Tensor | None, smallest: float) -> float:
    """Largest difference as a share of the largest number, or of ``smallest`` if it is larger."""
    if recorded is None or expected is None:
        return 0.0 if recorded is expected else math.inf
    if recorded.shape != expected.shape:
        return math.inf
    scale = max(smallest, float(expected.abs().max()))
    return float((recorded.double() - expected.double()).abs().max()) / scale


def _array_difference(drawn: NDArray[np.generic], expected: NDArray[np.generic]) -> float:
    if drawn.shape != expected.shape:
        return math.inf
    scale = max(1.0, float(np.abs(expected.astype(np.float64)).max(initial=0.0)))
    return float(np.abs(drawn.astype(np.float64) - expected.astype(np.float64)).max(initial=0.0)) / scale


def _worst(*values: float) -> float:
    """The largest value; NaN if any value is NaN, because NaN is never within a limit."""
    return math.nan if any(value != value for value in values) else max(values)
