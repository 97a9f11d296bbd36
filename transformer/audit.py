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
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch

from transformer import equations
from transformer import interventions as do
from transformer.config import ENCODINGS, ModelConfig, Place, PlacedHead, Side
from transformer.encodings import ALL_HEADS, Learned
from transformer.equations import HeadChange
from transformer.hooks import CONSTANTS, UNFUSED, Edit, Hooks, hook_names
from transformer.interventions.edits import edits
from transformer.model import EncoderDecoder, Network
from transformer.stream import SMALLEST_SCALE, audit_stream, textbook_norm
from transformer.trace import REPLACED, AttentionMap, AttentionTrace, LayerTrace, trace_of
from transformer.view import (
    PLACES,
    AuditReport,
    Check,
    HeadLabels,
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
    decoded: tuple[
        float, ...
    ] = (),  # log-probability of each output token when it was decoded, in nats
    replayed: tuple[
        float, ...
    ] = (),  # the same from an independent, uncached pass over the finished output
    # a changed run needs a basis, and only a model can tell whether every recording belongs to its
    # place
    basis: Basis = None,
) -> AuditReport:
    """Runs every check that a trace allows."""
    limit = OUTPUT_LIMIT[trace.dtype]
    small = EMBEDDING_LIMIT if trace.dtype == torch.float32 else limit
    hooked = any(name.rpartition(".")[2] not in UNFUSED for name in trace.functions)
    checks = list[Check]()
    for kind, layer in places:
        heads = f"{trace.config.sites[kind].sublayer(layer).path}.heads"
        checks += audit_layer(trace.layer(kind, layer), trace.dtype, heads in trace.functions)
    if decoded:  # as they were when each token was chosen, and by the other pass
        pairs = zip(decoded, replayed, strict=False)
        largest = (
            math.inf if len(decoded) != len(replayed) else worst(*(abs(a - b) for a, b in pairs))
        )
        checks.append(Check("log-probabilities", largest, LOG_PROB_LIMIT[trace.dtype]))

    def elsewhere() -> AuditReport:
        of_stream = [] if basis is None or hooked else audit_stream(trace, basis, limit)
        of_places = (
            audit_places(trace, basis, limit) if isinstance(basis, Network) and not hooked else []
        )
        return AuditReport((*of_stream, *of_places)).joined(audit_entered(trace, basis, small))

    unknown = " (so places and the stream were not checked)" * hooked
    changes = [str(change.value) for change in trace.changes]
    changes += [f"a function of yours acts at {name}{unknown}" for name in trace.functions]
    skipped = SKIPPED if hooked else ()
    report = AuditReport(merged(checks).checks, tuple(changes), skipped=skipped)
    return report.joined(trace.once((audit, basis), elsewhere))


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
    sums_name = "row sums"
    sums_limit = ROW_SUM_LIMIT
    if (
        layer.used_weights is not None and torch.finfo(dtype).eps > ROW_SUM_LIMIT
    ):  # a function saw them rounded
        sums_name, sums_limit = "row sums in 16 bits", torch.finfo(dtype).eps
    heads, queries, keys = layer.shape
    value = layer.value.numpy()
    used = layer.output.numpy()
    own = used if layer.own_output is None else layer.own_output.numpy()
    scale = max(float(np.abs(value).max()), 1e-30)
    chunk = max(1, CELLS // (heads * keys))
    for start in range(0, queries, chunk):
        rows = slice(start, min(start + chunk, queries))
        _, _, mask, expected = textbook(layer, ALL_HEADS, rows)
        derived = layer.map(ALL_HEADS, Window(rows.start, rows.stop, 0, keys)).weights.numpy()
        sums = mask.any(-1) * 1.0 if layer.focus is None else expected.sum(-1)
        for weights in (derived, expected):
            yield Check(sums_name, float(np.abs(weights.sum(-1) - sums).max()), sums_limit)
        yield Check("masked weights", float(np.abs(np.where(mask, 0.0, derived)).max()), 0.0)
        yield Check("weights", float(np.abs(expected - derived).max()), WEIGHT_LIMIT)
        yield Check(OUTPUTS, float(np.abs(expected @ value - own[:, rows]).max()) / scale, limit)
    acting = any(change.value.part == "heads" for change in layer.changes)
    if not hooked and acting == (layer.own_output is None):
        yield Check(HEADS, math.inf, limit)
    elif not hooked and acting:
        made = [
            equations.put_textbook(output, head_changes(layer, i)) for i, output in enumerate(own)
        ]
        yield Check(
            HEADS, difference(used, np.stack(made), max(float(np.abs(own).max()), 1e-30)), limit
        )


def textbook(layer: LayerTrace, heads: slice, rows: slice) -> AttentionMap:
    """Equation 1 step by step, with changes; rows that a function replaced are as used.

    Weights are exp(s) / Σ exp(s) over the visible keys, in local attention times the Gaussian; the
    mask is rebuilt from the padding, the causal rule, and what changed it.
    """
    score = layer.score
    query = layer.query[heads, rows].numpy()
    key = layer.key[heads].numpy()
    cells = torch.arange(rows.start, rows.stop), torch.arange(layer.shape[2])
    places, keys = (positions.numpy() for positions in cells)
    near = factors = bias = None
    if layer.focus is not None:
        centres = layer.focus.centres[rows].numpy()
        near, factors = equations.focused_textbook(centres, layer.focus.half_width, len(keys))
    if layer.used_mask is not None:
        mask = layer.used_mask[rows].numpy()
    else:
        mask = keys <= places[:, None] if layer.causal else np.ones((len(places), len(keys)), bool)
        for part in (None if layer.key_padding is None else layer.key_padding.numpy(), near):
            mask = mask if part is None else mask & part
        if layer.changes:
            mask = equations.masked_textbook(
                mask, [change.value for change in layer.changes], rows.start
            )
    if score.vector is None:
        products = np.einsum("hqd,hkd->hqk", query, key, optimize=True)
    else:
        products = equations.additive_textbook(score.vector[heads].numpy(), query, key)
    if layer.bias is not None:
        bias = (
            layer.bias.scores(layer.query[heads, rows], *cells, heads)
            .expand(products.shape)
            .numpy()
        )
    divisor = math.sqrt(query.shape[-1]) if score.name == "scaled_dot" else 1.0
    divided = layer.bias is not None and layer.bias.divided
    scores = []
    weights = []
    for i, head in enumerate(range(layer.shape[0])[heads]):
        part = None if bias is None else bias[i]
        changes = head_changes(layer, head)
        scores.append(equations.scored_textbook(products[i], part, divided, divisor, changes))
        weights.append(equations.weighed_textbook(scores[i], mask, factors, rows.start, changes))
    expected = np.stack(weights)
    if layer.used_weights is not None:
        used = layer.used_weights[heads, rows].numpy()
        expected = np.where(
            np.abs(expected - used).max(-1, keepdims=True) > REPLACED, used, expected
        )
    return AttentionMap(bias, np.stack(scores), mask, expected)


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


VECTORS = {"query": "queries", "key": "keys", "value": "keys", "output": "queries"}
"""What a view of a head holds besides its map, and the axis of each."""


def audit_view(
    view: HeadView,
    layer: LayerTrace,
    labels: HeadLabels | None = None,  # the tokens of the run; None if they are not known
    place: PlacedHead | None = None,  # the head that was asked for; None if any will do
) -> AuditReport:
    """Compares the arrays, the labels and the place of a view of a head with those of the run."""
    _, scores, mask, weights = textbook(layer, slice(view.head, view.head + 1), view.window.queries)
    whole = {"scores": scores[0], "mask": mask, "weights": weights[0]}
    expected = {name: array[:, view.window.keys] for name, array in whole.items()}
    for name, axis in VECTORS.items():
        expected[name] = getattr(layer, name)[view.head, getattr(view.window, axis)]
    arrays = worst(
        *(difference(getattr(view, name), array, 1.0) for name, array in expected.items())
    )
    drawn = HeadLabels(view.query_tokens, view.predicted_tokens, view.key_tokens)
    counts = (len(drawn.queries), len(drawn.predicted or drawn.queries), len(drawn.keys))
    wrong = counts != (view.weights.shape[0], *view.weights.shape)
    wrong |= labels is not None and drawn != labels.of(view.window)
    wrong |= place is not None and place != (view.kind, view.layer, view.head)
    return AuditReport(
        (Check("arrays drawn", arrays, VIEW_LIMIT), Check("labels", float(wrong), 0.0))
    )


def head_view(
    trace: AttentionTrace,
    place: PlacedHead,  # the head
    labels: HeadLabels,  # tokens of the whole map
    model: tuple[str, str],  # its name, and "pre", "post" or "none"
    window: Window | None = None,  # the part of the map; None for all of it
    more: Callable[[], AuditReport] = lambda: AuditReport(
        ()
    ),  # checks besides those of trace and view
) -> HeadView:
    """One head as arrays; it is audited when somebody asks for its audit.

    IndexError if there is no such layer or head, or the window leaves the map.
    """
    record = trace.layer(*place)
    head = place[2]
    focus, (_, queries, keys) = record.focus, record.shape
    window = window or Window(0, queries, 0, keys)
    sides = (
        (window.query_start, window.query_stop, queries),
        (window.key_start, window.key_stop, keys),
    )
    if not all(0 <= start < stop <= count for start, stop, count in sides):
        raise IndexError(f"The window {window} leaves the map of {queries} × {keys} cells.")
    drawn = labels.of(window)
    cells = trace.map(*place, window)
    centres = None
    reach = 0
    if focus is not None:
        centres = read_only(focus.centres[window.queries])
        reach = focus.half_width

    def report(view: HeadView) -> AuditReport:
        arrays = audit_view(view, record, trace.labels(place[0]), place)
        return trace.audit(place[:2]).joined(arrays).joined(more())

    return HeadView(
        kind=place[0],
        layer=place[1],
        head=head,
        model=model[0],
        norm=model[1],
        query_tokens=drawn.queries,
        predicted_tokens=drawn.predicted,
        key_tokens=drawn.keys,
        window=window,
        scores=cells.scores,
        mask=cells.mask,
        weights=cells.weights,
        report=report,
        score=record.score.name,
        centres=centres,
        reach=reach,
        query=read_only(record.query[head, window.queries]),
        key=read_only(record.key[head, window.keys]),
        value=read_only(record.value[head, window.keys]),
        output=read_only(record.output[head, window.queries]),
    )


def audit_entered(trace: AttentionTrace, basis: Basis, limit: float) -> AuditReport:
    """Compares what enters each stack with its equations, part by part.

    Token embeddings are table[id] × scale, positions those of their table or formula, and the input
    of the first layer is the sum of both, or its norm.
    """
    model = basis if isinstance(basis, Network) else None
    config = basis.config if isinstance(basis, Network) else basis
    unmade = [] if model is not None else [LABELS_UNMADE, PLACES_UNMADE]
    sums = list[float]()
    for embedding in trace.embeddings.values():
        total = (
            embedding.sum
            if embedding.norm is None
            else textbook_norm(embedding.norm, embedding.sum)
        )
        own = embedding.input if embedding.own_input is None else embedding.own_input
        sums.append(difference(total, own, 1.0))
    checks = [Check("embeddings", worst(*sums), limit)]
    hooked = {
        name.partition(".")[0]
        for name in trace.functions
        if name.endswith((".tokens", ".positions"))
    }
    sides = [side for side in trace.embeddings if side not in hooked]
    if model is not None and trace.tokens:
        differences = [0.0]
        for side in sides:
            ids = torch.tensor(trace.tokens[side].ids)
            table = model.table(side).weight.detach()
            known = ids < len(table)
            rows = table[ids.where(known, 0).to(table.device)].double().cpu() * known[:, None]
            expected = rows * model.config.embedding_scale
            differences.append(difference(trace.embeddings[side].tokens, expected, 1.0))
        checks.append(Check("tokens", worst(*differences), limit))
    if config is not None and ENCODINGS[config.positions].acts == "embeddings":
        found = [_positions(trace, model, config, side) for side in sides]
        made = [each for each in found if each is not None]
        unmade += [POSITIONS_UNMADE] if len(made) < len(found) else []
        checks += [Check("positions", worst(*made), limit)] if made else []
    return AuditReport(tuple(checks), unmade=tuple(unmade))


def _positions(
    trace: AttentionTrace, model: Network | None, config: ModelConfig, side: Side
) -> float | None:
    """Largest difference of a side's positions from what they must be; None if their table is not
    here."""
    changed = (change.value for change in trace.changes)
    bare = any(isinstance(each, do.NoPositions) and each.side == side for each in changed)
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
    return difference(
        recorded, encoding.table[first : first + len(recorded)].detach().double().cpu(), 1.0
    )


@torch.inference_mode()
def audit_places(trace: AttentionTrace, model: Network, limit: float) -> list[Check]:
    """Binds each recording to its place: a second pass of the model, with the recordings as
    answers.

    Each attention of a trace may be consistent by itself even if two heads, two layers or two steps
    have changed places. If every attention returns its recorded output, the model must compute at
    every place the queries, keys and values that were recorded there. What was changed outside
    attention is changed in this pass, too.
    """
    device = model.embedding.weight.device
    names = {f"{side}.input" for side in trace.embeddings} | {
        "encoder.output"
    } & trace.tensors.keys()
    names |= {
        f"{model.config.sites[kind].sublayer(layer).path}.heads"
        for kind, layers in trace.layers.items()
        for layer in range(len(layers))
    }
    answers: dict[str, list[Edit]] = {
        name: [lambda own, _, there=trace.tensors[name]: there[None].to(own)]  # type: ignore[misc]
        for name in names
    }
    parts = {"query", "key", "value", "centres"} | {"encoder.output"} & set(
        hook_names(model.config)
    )
    changes = [change for change in trace.changes if change.value.part == "stream"]
    if any(isinstance(each.value, do.Patch) and each.material is None for each in changes):
        return [Check(PLACES, math.inf, limit)]  # nobody knows what the patch put in
    hooks = Hooks(parts, (edits(changes, model.config) if changes else {}) | answers)
    lengths = {side: (1, len(embedding.input)) for side, embedding in trace.embeddings.items()}
    # any ids do: what is read of the embeddings, ``.input``, is answered
    ids = {
        side: torch.full(length, model.config.eos_id, device=device)
        for side, length in lengths.items()
    }
    padding = next(
        (each for name, each in trace.tensors.items() if name.endswith("attention.padding")), None
    )
    if isinstance(model, EncoderDecoder):
        mask = None if padding is None else padding[None].to(device)
        memory = model.encode(ids["encoder"], mask, hooks)
        if "decoder" in ids:
            model.decode(ids["decoder"], memory, mask, hooks=hooks)
    else:
        model.features(*ids.values(), hooks=hooks)
    again = trace_of(hooks, model.config, trace.auditor)
    constants = CONSTANTS - {"vector"}
    differences = list[float]()
    for name, tensor in again.tensors.items() if again is not None else ():
        if name.rpartition(".")[2] not in constants and name != "encoder.output":
            name = name.removesuffix(".own") if name not in trace.tensors else name
            differences.append(difference(tensor, trace.tensors.get(name), SMALLEST_SCALE))
    return [Check(PLACES, worst(0.0, *differences), limit)]


def merged(checks: Iterable[Check]) -> AuditReport:
    """One check per name, with the worst value."""
    by_name = dict[str, Check]()
    for check in checks:
        value = worst(
            check.value, *(before.value for before in [by_name.get(check.name)] if before)
        )
        by_name[check.name] = Check(check.name, value, check.limit)
    return AuditReport(tuple(by_name.values()))
