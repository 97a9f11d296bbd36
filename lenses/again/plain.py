"""One part of a residual stream by the plain formulas, vector by vector, in NumPy.

What a writer added stands in the stream of one token; every LayerNorm on the way takes its mean from it,
divides it by the σ of the run, and multiplies it by γ.
"""

from __future__ import annotations

from torch import Tensor, nn

from lenses.measures.stream import POSITION, TOKEN, Writer
from transformer.model.network import Network
from transformer.model.norms import centred, spread
from transformer.model.sites import AttentionKind, Side, Sublayer
from transformer.runs.translation import Translation
from transformer.trace.view import Array


def exactly(tensor: Tensor) -> Array:
    """The same numbers in float64."""
    found: Array = tensor.detach().double().cpu().numpy()
    return found


def output_columns(model: Network, kind: AttentionKind, layer: int, head: int) -> Array:
    """(d_model, d_head): the part of W_O that a head's output meets."""
    attention = model.attention(kind, layer)
    weight = attention.out_proj.weight
    assert isinstance(weight, Tensor)
    width = weight.shape[1] // model.config.n_heads
    return exactly(weight[:, head * width : (head + 1) * width])


def plain_part(
    model: Network,
    run: Translation,
    side: Side,
    writer: Writer,  # who wrote; not the biases
    position: int,
    reader: Sublayer | None = None,  # the sub-layer that reads the stream; None for what leaves the stack
    key: int | None = None,  # of a head: what it wrote through this key alone
) -> Array:
    """(d_model,) float64: what is left of a writer's vector where the stream of a token is read."""
    part = None
    if writer.what in (TOKEN, POSITION):
        part = _entered(run, side, writer.what, position)
    for sublayer in model.config.stacks[side].passed():
        if sublayer == reader:
            assert part is not None
            norm = model.residual(reader).norm
            return _normed(norm, run.stream(reader).stream[position], part) if _pre(model) else part
        if (sublayer.name, sublayer.layer) == (writer.what, writer.layer):
            part = _wrote(model, run, sublayer, writer.head, position, key)
        if part is not None:
            part = _after(model, run, sublayer, part, position)
    assert part is not None
    return _left(model, run, side, part, position)


def carried_on(model: Network, run: Translation, after: Sublayer, part: Array, position: int) -> Array:
    """(d_model,) what is left at a stack's end of a vector that a sub-layer added to a token's stream."""
    passed = model.config.stacks[after.side].passed()
    for sublayer in passed[passed.index(after) :]:
        part = _after(model, run, sublayer, part, position)
    return _left(model, run, after.side, part, position)


def _pre(model: Network) -> bool:
    return model.config.norm == "pre"


def _after(model: Network, run: Translation, sublayer: Sublayer, part: Array, position: int) -> Array:
    """A part after the sum of a sub-layer, which post-norm normalises."""
    if _pre(model):
        return part
    record = run.stream(sublayer)
    return _normed(model.residual(sublayer).norm, record.stream[position] + record.update[position], part)


def _left(model: Network, run: Translation, side: Side, part: Array, position: int) -> Array:
    """A part of the last stream as it leaves the stack, after the norm that pre-norm has there."""
    last = run.stream(model.config.stacks[side].ends()[-1]).output[position]
    return _normed(model.stack(side).final_norm, last, part) if _pre(model) else part


def _entered(run: Translation, side: Side, what: str, position: int) -> Array:
    assert run.attention is not None
    embedding = run.attention.embeddings[side]
    found = embedding.tokens if what == TOKEN else embedding.positions
    assert found is not None
    part, norm = exactly(found[position]), embedding.norm
    return part if norm is None else _normed(norm, embedding.sum[position], part)


def _wrote(
    model: Network, run: Translation, sublayer: Sublayer, head: int | None, position: int, key: int | None
) -> Array:
    """(d_model,) what a sub-layer, a head or one key of a head added to a token's stream."""
    if head is None:
        return exactly(run.stream(sublayer).update[position])
    assert run.attention is not None
    (kind,) = (
        kind
        for kind, site in model.config.sites.items()
        if (site.query_side, site.name) == (sublayer.side, sublayer.name)
    )
    columns = output_columns(model, kind, sublayer.layer, head)
    record = run.attention.layer(kind, sublayer.layer)
    if key is None:
        return columns @ exactly(record.output[head, position])
    return float(record.weights(head)[position, key]) * (columns @ exactly(record.value[head, key]))


def _normed(norm: nn.Module, entered: Tensor, part: Array) -> Array:
    """γ (p − mean p) / σ, with the σ of what entered; RMSNorm takes no mean."""
    gain = exactly(norm.get_parameter("weight"))
    found: Array = gain * centred(norm, part) / spread(norm, exactly(entered))
    return found
