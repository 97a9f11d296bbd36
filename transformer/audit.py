"""Checks a trace: recomputes attention by the textbook formula and compares it with the model's
real output.

Row sums of freshly computed softmax weights alone prove nothing. The proof is that the recomputed
weights and values reproduce the output that the fused kernel returned, and that the model, given
these outputs, computes in every layer, head and step the queries, keys and values that were
recorded there. The labels of a picture are tied to its numbers: a token is the row of its id in the
table, times the config's scale (section 3.4), and its position is the one that the model's table or
formula has there (section 3.5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import torch

from transformer import equations
from transformer import interventions as do
from transformer.config import ENCODINGS, ModelConfig, Place, PlacedHead, Side
from transformer.encodings import ALL_HEADS, Learned
from transformer.equations import HeadChange
from transformer.hooks import CONSTANTS, UNFUSED, At, Edit, HookName, Hooks, hook_names
from transformer.interventions.edits import edits
from transformer.model import EncoderDecoder, EncoderModel, Network
from transformer.stream import SMALLEST_SCALE, audit_stream, textbook_norm
from transformer.trace import REPLACED, AttentionArrays, AttentionTrace, LayerTrace, trace_of
from transformer.view import (
    PLACES,
    Array,
    AuditReport,
    BoolArray,
    Check,
    HeadLabels,
    HeadMap,
    HeadView,
    Window,
    difference,
    read_only,
    worst,
)

OUTPUTS, HEADS, TOKENS, PIECES = "outputs", "changed heads", "changed tokens", "pieces"
OUTPUT_LIMIT = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 2e-2}
LOG_PROB_LIMIT = {
    torch.float64: 1e-4,
    torch.float32: 1e-4,
    torch.float16: 2e-1,
    torch.bfloat16: 2e-1,
}
EMBEDDING_LIMIT = ROW_SUM_LIMIT = VIEW_LIMIT = 1e-5
WEIGHT_LIMIT = 1e-4
SMALLEST = 1e-30
"""Differences are divided by the largest number, or by this if all are zero."""
CELLS = 1 << 20
"""Number of weights to recompute at a time, so that an audit of a long text needs little memory."""
LABELS_UNMADE = "whether the labels name the tokens that were read"
PLACES_UNMADE = "whether every recording is in its layer, head and step"
SKIPPED = "places", "stream"
"""What is not checked where a user's function acts: no equation says what it makes of a value."""
POSITIONS_UNMADE = "whether the positions are those of the model's table"
Basis = Network | ModelConfig | None
"""The model; or its config if there is no model, as of a file."""


def audit(
    trace: AttentionTrace,  # what was recorded
    places: tuple[Place, ...],  # the attention sub-layers to check
    # log-probability of each output token when it was decoded, in nats
    decoded: tuple[float, ...] = (),
    # the same from an independent, uncached pass over the finished output
    replayed: tuple[float, ...] = (),
    # a changed run needs a basis, and only a model can tell whether every recording belongs to its
    # place
    basis: Basis = None,
) -> AuditReport:
    """Runs every check that a trace allows."""
    hooked = any(HookName.of(name).part not in UNFUSED for name in trace.functions)
    checks = list[Check]()
    for kind, layer in places:
        heads = f"{trace.config.sites[kind].paths[layer]}.heads"
        checks += audit_layer(trace.layer(kind, layer), trace.dtype, heads in trace.functions)
    if decoded:
        largest = _largest_difference(decoded, replayed)
        checks.append(Check("log-probabilities", largest, LOG_PROB_LIMIT[trace.dtype]))
    unchecked = " (so places and the stream were not checked)" if hooked else ""
    changes = [str(change.value) for change in trace.changes]
    changes += [f"a function of yours acts at {name}{unchecked}" for name in trace.functions]
    report = AuditReport(
        checks=merged(checks).checks, changes=tuple(changes), skipped=SKIPPED if hooked else ()
    )
    elsewhere = trace.once((audit, basis), lambda: _audit_elsewhere(trace, basis, hooked))
    return report.joined(elsewhere)


def _largest_difference(decoded: Sequence[float], replayed: Sequence[float]) -> float:
    """Of two passes over an output; infinite if they are not of one length."""
    if len(decoded) != len(replayed):
        return math.inf
    pairs = zip(decoded, replayed, strict=True)
    return worst(*(abs(first - second) for first, second in pairs))


def _audit_elsewhere(trace: AttentionTrace, basis: Basis, hooked: bool) -> AuditReport:
    """The checks that concern no attention alone: stream, places, what enters the stacks."""
    limit = OUTPUT_LIMIT[trace.dtype]
    checks = list[Check]()
    if basis is not None and not hooked:
        checks += audit_stream(trace, basis, limit)
        if isinstance(basis, Network):
            checks += audit_places(trace, basis, limit)
    small = EMBEDDING_LIMIT if trace.dtype == torch.float32 else limit
    return AuditReport(tuple(checks)).joined(audit_entered(trace, basis, small))


def audit_layer(
    layer: LayerTrace,
    dtype: torch.dtype = torch.float32,  # in which the model computed
    hooked: bool = False,  # whether a user's function put in what W_O received
) -> Iterator[Check]:
    """Row sums, exact zeros under the mask, and the output, over all heads and rows of one
    sub-layer.

    A row sums to 1, or to 0 if it sees no key; in local attention to what the Gaussian leaves of
    it. What W_O received is what the layer's changes make of each head's own output, unless no
    equation knows it.
    """
    limit = OUTPUT_LIMIT[dtype]
    (n_heads, n_queries, n_keys) = layer.shape
    step = max(1, CELLS // (n_heads * n_keys))
    for start in range(0, n_queries, step):
        rows = slice(start, min(start + step, n_queries))
        yield from _audit_rows(layer, rows, dtype, limit)
    acting = any(change.value.part == "heads" for change in layer.changes)
    if hooked:
        return
    if acting == (layer.own_output is None):
        yield Check(HEADS, math.inf, limit)
    elif acting:
        yield _audit_heads(layer, limit)


def _audit_rows(
    layer: LayerTrace, rows: slice, dtype: torch.dtype, limit: float
) -> Iterator[Check]:
    """The checks of some queries of all heads."""
    sums_name = "row sums"
    sums_limit = ROW_SUM_LIMIT
    precision = torch.finfo(dtype).eps
    if layer.used_weights is not None and precision > ROW_SUM_LIMIT:  # a function saw them rounded
        sums_name = "row sums in 16 bits"
        sums_limit = precision
    (_, _, mask, expected) = textbook(layer, ALL_HEADS, rows)
    window = Window(rows.start, rows.stop, 0, layer.shape[2])
    derived = layer.map(ALL_HEADS, window).weights.numpy()
    sums = mask.any(-1) * 1.0 if layer.focus is None else expected.sum(-1)
    for weights in (derived, expected):
        yield Check(sums_name, float(np.abs(weights.sum(-1) - sums).max()), sums_limit)
    yield Check("masked weights", float(np.abs(np.where(mask, 0.0, derived)).max()), 0.0)
    yield Check("weights", float(np.abs(expected - derived).max()), WEIGHT_LIMIT)
    value = layer.values().numpy()
    scale = max(float(np.abs(value).max()), SMALLEST)
    outputs = _own_output(layer)[:, rows]
    yield Check(OUTPUTS, float(np.abs(expected @ value - outputs).max()) / scale, limit)


def _audit_heads(layer: LayerTrace, limit: float) -> Check:
    """Whether what W_O read is what the changes make of each head's own output."""
    outputs = _own_output(layer)
    expected = [
        equations.put_textbook(output, head_changes(layer, head))
        for head, output in enumerate(outputs)
    ]
    scale = max(float(np.abs(outputs).max()), SMALLEST)
    return Check(HEADS, difference(layer.output.numpy(), np.stack(expected), scale), limit)


def _own_output(layer: LayerTrace) -> Array:
    """(heads, queries, d_head) outputs before something changed them."""
    output = layer.output if layer.own_output is None else layer.own_output
    array: Array = output.numpy()
    return array


def textbook(layer: LayerTrace, heads: slice, rows: slice) -> AttentionArrays:
    """Equation 1 step by step, with changes; rows that a function replaced are as used.

    Weights are exp(s) / Σ exp(s) over the visible keys, in local attention times the Gaussian; the
    mask is rebuilt from the padding, the causal rule, and what changed it.
    """
    near = None
    factors = None
    if layer.focus is not None:
        centres = layer.focus.centres[rows].numpy()
        half_width = layer.focus.half_width
        (near, factors) = equations.focused_textbook(centres, half_width, layer.shape[2])
    mask = _textbook_mask(layer, rows, near)
    (bias, scores) = _textbook_scores(layer, heads, rows)
    weights = np.stack(
        [
            equations.weighed_textbook(
                of_head, mask, factors, rows.start, head_changes(layer, head)
            )
            for head, of_head in zip(range(layer.shape[0])[heads], scores, strict=True)
        ]
    )
    if layer.used_weights is not None:
        used = layer.used_weights[heads, rows].numpy()
        replaced = np.abs(weights - used).max(-1, keepdims=True) > REPLACED
        weights = np.where(replaced, used, weights)
    return AttentionArrays(bias=bias, scores=scores, mask=mask, weights=weights)


def _textbook_mask(layer: LayerTrace, rows: slice, near: BoolArray | None) -> BoolArray:
    """(rows, keys), True = may attend; ``near`` are the keys in the windows of local attention."""
    if layer.used_mask is not None:
        used: BoolArray = layer.used_mask[rows].numpy()
        return used
    queries = np.arange(rows.start, rows.stop)[:, None]
    keys = np.arange(layer.shape[2])
    mask = keys <= queries if layer.causal else np.ones((len(queries), len(keys)), bool)
    if layer.key_padding is not None:
        mask = mask & layer.key_padding.numpy()
    if near is not None:
        mask = mask & near
    if layer.changes:
        values = [change.value for change in layer.changes]
        mask = equations.masked_textbook(mask, values, rows.start)
    return mask


def _textbook_scores(layer: LayerTrace, heads: slice, rows: slice) -> tuple[Array | None, Array]:
    """(heads, rows, keys): what positions add, and the scores."""
    query = layer.query[heads, rows].numpy()
    key = layer.keys(heads).numpy()
    if layer.score.vector is None:
        products = np.einsum("hqd,hkd->hqk", query, key, optimize=True)
    else:
        products = equations.additive_textbook(layer.score.vector[heads].numpy(), query, key)
    divided = False
    bias = None
    biases: Sequence[Array | None] = [None] * len(products)
    if layer.bias is not None:
        divided = layer.bias.divided
        cells = torch.arange(rows.start, rows.stop), torch.arange(layer.shape[2])
        added = layer.bias.scores(layer.query[heads, rows], *cells, heads)
        bias = added.expand(products.shape).numpy()
        biases = list(bias)
    divisor = math.sqrt(query.shape[-1]) if layer.score.name == "scaled_dot" else 1.0
    scores = [
        equations.scored_textbook(of_head, of_bias, divided, divisor, head_changes(layer, head))
        for head, of_head, of_bias in zip(
            range(layer.shape[0])[heads], products, biases, strict=True
        )
    ]
    return bias, np.stack(scores)


def head_changes(layer: LayerTrace, head: int) -> list[HeadChange]:
    """Changes in one head, with the values that they put in."""
    pairs = list[HeadChange]()
    for change in layer.changes:
        heads = change.value.heads_of(layer.kind, layer.number, layer.shape[0])
        material = change.material
        if head in heads:
            if material is not None and not isinstance(change.value, do.Patch):
                material = material[heads.index(head)]
            pairs.append((change.value, None if material is None else material.float().numpy()))
    return pairs


def audit_view(
    view: HeadView,
    layer: LayerTrace,
    labels: HeadLabels | None = None,  # the tokens of the run; None if they are not known
    place: PlacedHead | None = None,  # the head that was asked for; None if any will do
) -> AuditReport:
    """Compares the arrays, the labels and the place of a view of a head with those of the run."""
    heads = slice(view.head, view.head + 1)
    (_, scores, mask, weights) = textbook(layer, heads, view.window.queries)
    expected = {
        "scores": scores[0, :, view.window.keys],
        "mask": mask[:, view.window.keys],
        "weights": weights[0, :, view.window.keys],
    }
    expected["query"] = layer.query[view.head, view.window.queries].numpy()
    expected["key"] = layer.keys(view.head)[view.window.keys].numpy()
    expected["value"] = layer.values(view.head)[view.window.keys].numpy()
    expected["output"] = layer.output[view.head, view.window.queries].numpy()
    arrays = worst(
        *(difference(getattr(view, name), array, 1.0) for name, array in expected.items())
    )
    drawn = HeadLabels(view.query_tokens, view.predicted_tokens, view.key_tokens)
    n_predicted = len(drawn.predicted or drawn.queries)
    wrong = (len(drawn.queries), len(drawn.keys)) != view.weights.shape
    wrong |= n_predicted != len(view.weights)
    wrong |= labels is not None and drawn != labels.of(view.window)
    wrong |= place is not None and place != (view.kind, view.layer, view.head)
    return AuditReport(
        (Check("arrays drawn", arrays, VIEW_LIMIT), Check("labels", float(wrong), 0.0))
    )


def head_view(
    trace: AttentionTrace,
    place: PlacedHead,  # the head
    labels: HeadLabels,  # tokens of the whole map
    *,
    model: str,  # its name
    norm: str,  # where LayerNorm stands: "pre", "post" or "none"
    window: Window | None = None,  # the part of the map; None for all of it
    # checks besides those of trace and view
    more: Callable[[], AuditReport] = lambda: AuditReport(()),
) -> HeadView:
    """One head as arrays; it is audited when somebody asks for its audit.

    IndexError if there is no such layer or head, or the window leaves the map.
    """
    (kind, layer, head) = place
    record = trace.layer(kind, layer, head)
    window = window or Window(0, record.shape[1], 0, record.shape[2])
    _check_window(window, record)
    drawn = labels.of(window)
    arrays = trace.map(kind, layer, head, window)
    focus = record.focus

    def report(view: HeadMap) -> AuditReport:
        assert isinstance(view, HeadView)
        of_view = audit_view(view, record, trace.labels(kind), place)
        return trace.audit((kind, layer)).joined(of_view).joined(more())

    return HeadView(
        kind=kind,
        layer=layer,
        head=head,
        model=model,
        norm=norm,
        query_tokens=drawn.queries,
        predicted_tokens=drawn.predicted,
        key_tokens=drawn.keys,
        window=window,
        scores=arrays.scores,
        mask=arrays.mask,
        weights=arrays.weights,
        report=report,
        score=record.score.name,
        centres=None if focus is None else read_only(focus.centres[window.queries]),
        reach=0 if focus is None else focus.half_width,
        query=read_only(record.query[head, window.queries]),
        key=read_only(record.keys(head)[window.keys]),
        value=read_only(record.values(head)[window.keys]),
        output=read_only(record.output[head, window.queries]),
    )


def _check_window(window: Window, record: LayerTrace) -> None:
    """IndexError if a window leaves the map of an attention, or is empty."""
    (_, queries, keys) = record.shape
    rows = 0 <= window.query_start < window.query_stop <= queries
    columns = 0 <= window.key_start < window.key_stop <= keys
    if not rows or not columns:
        raise IndexError(f"The window {window} leaves the map of {queries} × {keys} cells.")


def audit_entered(trace: AttentionTrace, basis: Basis, limit: float) -> AuditReport:
    """Compares what enters each stack with its equations, part by part.

    Token embeddings are table[id] × scale, positions those of their table or formula, and the input
    of the first layer is the sum of both, or its norm.
    """
    model = basis if isinstance(basis, Network) else None
    config = basis.config if isinstance(basis, Network) else basis
    checks = [Check("embeddings", _sums(trace), limit)]
    unmade = list[str]()
    if model is None:
        unmade += [LABELS_UNMADE, PLACES_UNMADE]
    names = [HookName.of(name) for name in trace.functions]
    hooked = {name.path for name in names if name.part in ("tokens", "positions")}
    sides = [side for side in trace.embeddings if side not in hooked]
    if model is not None and trace.tokens:
        differences = [_token_difference(trace, model, side) for side in sides]
        checks.append(Check("tokens", worst(0.0, *differences), limit))
    if config is not None and ENCODINGS[config.positions].acts == "embeddings":
        positions = [_positions(trace, model, config, side) for side in sides]
        known = [value for value in positions if value is not None]
        if len(known) < len(positions):
            unmade.append(POSITIONS_UNMADE)
        if known:
            checks.append(Check("positions", worst(*known), limit))
    return AuditReport(tuple(checks), unmade=tuple(unmade))


def _sums(trace: AttentionTrace) -> float:
    """Largest difference between what entered a stack and the sum of its parts, or its norm."""
    differences = list[float]()
    for embedding in trace.embeddings.values():
        expected = embedding.sum
        if embedding.norm is not None:
            expected = textbook_norm(embedding.norm, expected)
        entered = embedding.input if embedding.own_input is None else embedding.own_input
        differences.append(difference(expected, entered, 1.0))
    return worst(*differences)


def _token_difference(trace: AttentionTrace, model: Network, side: Side) -> float:
    """Largest difference of a side's token embeddings from the model's rows of their ids."""
    ids = torch.tensor(trace.tokens[side].ids)
    table = model.table(side).weight.detach()
    known = ids < len(table)
    rows = table[ids.where(known, 0).to(table.device)].double().cpu() * known[:, None]
    expected = rows * model.config.embedding_scale
    if isinstance(model, EncoderModel) and model.segments is not None:
        vectors = model.segments.weight.detach().double().cpu()
        expected = expected + vectors[_segments(trace.tokens[side].ids, model.config)]
    return difference(trace.embeddings[side].tokens, expected, 1.0)


def _segments(ids: Sequence[int], config: ModelConfig) -> list[int]:
    """Which text of a pair each token belongs to, from 0: an end is of the text that it ends."""
    segments = list[int]()
    ended = 0
    for number in ids:
        segments.append(min(ended, config.n_segments - 1))
        ended += number == config.eos_id
    return segments


def _positions(
    trace: AttentionTrace, model: Network | None, config: ModelConfig, side: Side
) -> float | None:
    """Largest difference of a side's positions from what they must be; None if their table is not
    here."""
    bare = any(
        isinstance(change.value, do.NoPositions) and change.value.side == side
        for change in trace.changes
    )
    recorded = trace.embeddings[side].positions
    if bare:
        return 0.0 if recorded is None else math.inf
    if recorded is None:
        return math.inf
    first = trace.tokens[side].first if trace.tokens else 0
    if config.positions == "sinusoidal":
        formula = torch.from_numpy(equations.sinusoids(config, first, len(recorded)))
        # a file of 16 bits may hold the table, rounded
        rounded = [formula, formula.bfloat16().double(), formula.half().double()]
        return min(difference(recorded, table, 1.0) for table in rounded)
    encoding = None if model is None else model.stack(side).positions
    if not isinstance(encoding, Learned):
        return None
    rows = encoding.table[first : first + len(recorded)]
    return difference(recorded, rows.detach().double().cpu(), 1.0)


@torch.inference_mode()
def audit_places(trace: AttentionTrace, model: Network, limit: float) -> list[Check]:
    """Binds each recording to its place: a second pass of the model, with the recordings as
    answers.

    Each attention of a trace may be consistent by itself even if two heads, two layers or two steps
    have changed places. If every attention returns its recorded output, the model must compute at
    every place the queries, keys and values that were recorded there. What was changed outside
    attention is changed in this pass, too.
    """
    changes = [change for change in trace.changes if change.value.part == "stream"]
    if any(isinstance(change.value, do.Patch) and change.material is None for change in changes):
        return [Check(PLACES, math.inf, limit)]  # nobody knows what the patch put in
    parts = {"query", "key", "value", "centres"}
    if "encoder.output" in hook_names(model.config):
        parts.add("encoder.output")
    by_name = edits(changes, model.config) if changes else {}
    hooks = Hooks(parts, by_name | _answers(trace, model))
    _pass(trace, model, hooks)
    repeated = trace_of(hooks, model.config, trace.auditor)
    differences = [0.0]
    tensors = {} if repeated is None else repeated.tensors
    for text, tensor in tensors.items():
        name = HookName.of(text)
        if name.part in CONSTANTS - {"vector"} or text == "encoder.output":
            continue
        recorded = trace.tensors.get(text, trace.tensors.get(name.used))
        differences.append(difference(tensor, recorded, SMALLEST_SCALE))
    return [Check(PLACES, worst(*differences), limit)]


def _answers(trace: AttentionTrace, model: Network) -> dict[str, list[Edit]]:
    """By name, what puts a recording in the place of what the model computes."""
    names = {f"{side}.input" for side in trace.embeddings}
    if "encoder.output" in trace.tensors:
        names.add("encoder.output")
    for kind, layers in trace.layers.items():
        paths = model.config.sites[kind].paths[: len(layers)]
        names |= {f"{path}.heads" for path in paths}
    return {name: [partial(_answer, trace.tensors[name])] for name in names}


def _answer(recorded: torch.Tensor, computed: torch.Tensor, at: At) -> torch.Tensor:
    """An edit that goes on with a recording."""
    return recorded[None].to(computed)


def _pass(trace: AttentionTrace, model: Network, hooks: Hooks) -> None:
    """A pass of the model over as many tokens as a trace has; any ids do, since what is read of the
    embeddings, ``.input``, is answered."""
    device = model.embedding.weight.device
    ids = {
        side: torch.full((1, len(embedding.input)), model.config.eos_id, device=device)
        for side, embedding in trace.embeddings.items()
    }
    if not isinstance(model, EncoderDecoder):
        model.features(*ids.values(), hooks=hooks)
        return
    paddings = (
        tensor for name, tensor in trace.tensors.items() if name.endswith("attention.padding")
    )
    padding = next(paddings, None)
    mask = None if padding is None else padding[None].to(device)
    memory = model.encode(ids["encoder"], mask, hooks)
    if "decoder" in ids:
        model.decode(ids["decoder"], memory, mask, hooks=hooks)


def merged(checks: Iterable[Check]) -> AuditReport:
    """One check per name, with the worst value."""
    by_name = dict[str, Check]()
    for check in checks:
        value = check.value
        if check.name in by_name:
            value = worst(value, by_name[check.name].value)
        by_name[check.name] = Check(check.name, value, check.limit)
    return AuditReport(tuple(by_name.values()))
