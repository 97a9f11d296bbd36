"""The interventions on tokens, heads, masks and a stack's arithmetic: what each holds, says and does.

A change of heads or a mask says what it makes of a tensor that ends in (queries, keys) or (queries, d_head):
a new one, or its own input if it does not concern it; ``first`` is the position of the first query, from 0.
Messages name the sorts of change in the order of the classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import transformer.interventions.request as request
from transformer.config import AttentionKind, Side, Sublayer
from transformer.interventions.codec import Intervention, InterventionError
from transformer.interventions.request import SITES, Attention, Cells, Heads, Layer, Rows, RunShape

if TYPE_CHECKING:  # an address holds changes, and needs no PyTorch
    from torch import Tensor

IN_HEADS = "{kind}, layer {layer}, {head}"
Acts = Literal["scores", "weights", "output"]
"""Parts of a head that a change may act on."""


# Tokens: they never change the model's distribution; log-probabilities and alternatives stay its own.


@dataclass(frozen=True)
class Choose(Intervention, name="choose", says="step {step} writes {token}"):
    """One token at one step of the output, in every live hypothesis; no output ends before that step."""

    step: request.Step
    token: request.TokenField


@dataclass(frozen=True)
class Forbid(Intervention, name="forbid"):
    """A token that the output may not hold, at one step or anywhere."""

    token: request.TokenField
    step: Annotated[int | None, request.STEP] = None  # from 0; None for every step

    def __str__(self) -> str:
        where = "" if self.step is None else f" at step {self.step + 1}"
        return f"{request.quoted(self.token)} is forbidden{where}"


@dataclass(frozen=True)
class Prefix(Intervention, name="prefix", says="the output begins with {token_ids}"):
    """The first tokens of the output; after them, the search continues as asked."""

    token_ids: Annotated[tuple[request.Token, ...], request.TOKENS]  # ids or pieces


@dataclass(frozen=True)
class EditSource(Intervention, name="edit", says="source token {position} becomes {token}"):
    """A different token at one position of the source, as typed."""

    position: request.Typed
    token: request.TokenField


@dataclass(frozen=True)
class DropSource(Intervention, name="drop", says="source token {position} is left out"):
    """The source, as typed, without the token at one position."""

    position: request.Typed


# Heads.


class InAttention(Intervention):
    """A change inside single heads."""

    @property
    def acts_on(self) -> Acts:
        """The part of a head that it changes."""
        raise NotImplementedError

    @property
    def site(self) -> tuple[AttentionKind, int] | None:
        """The attention sub-layer whose heads it changes; None if it acts on something else."""
        raise NotImplementedError

    def heads(self, n_heads: int) -> tuple[int, ...]:
        """The heads that it changes there."""
        raise NotImplementedError

    def moved(self, heads: tuple[int, ...]) -> Self:
        """The same at other heads of its layer."""
        raise NotImplementedError

    def heads_of(self, kind: AttentionKind, layer: int, n_heads: int) -> tuple[int, ...]:
        """The heads of an attention sub-layer that it changes."""
        return self.heads(n_heads) if self.site == (kind, layer) else ()

    def in_head(self, kind: AttentionKind, layer: int, head: int) -> bool:
        """True if it changes this head."""
        return head in self.heads_of(kind, layer, head + 1)

    def on_scores(self, own: Tensor, bias: Tensor | None, d_head: int) -> Tensor:
        """One head's scores (…, queries, keys), as the softmax receives them.

        ``bias`` is the part of them that positions add, undivided by √d_k; None without any.
        """
        return own

    def on_weights(self, own: Tensor, visible: Tensor, first: int) -> Tensor:
        """One head's weights (…, queries, keys); ``visible``, in the same shape, is the mask."""
        return own

    def put_out(self, own: Tensor, first: int, material: Tensor | None) -> Tensor:
        """One head's output (…, queries, d_head); ``material`` is what the change puts in."""
        return own


@dataclass(frozen=True)
class InHeads(InAttention):
    """A change of one head of a layer, of several, or of all."""

    kind: Attention
    layer: Layer
    head: Heads

    @property
    def site(self) -> tuple[AttentionKind, int]:
        return self.kind, self.layer

    def heads(self, n_heads: int) -> tuple[int, ...]:
        return tuple(range(n_heads)) if self.head is None else self.head

    def moved(self, heads: tuple[int, ...]) -> Self:
        return replace(self, head=heads)

    def to_parts(self) -> list[str]:
        kind, layer, heads, *rest = super().to_parts()
        return [kind, f"{layer}.{heads}" if heads else layer, *rest]

    @classmethod
    def from_parts(cls, parts: list[str]) -> Self:
        layer, dot, heads = parts[1].partition(".")
        parts[1:2] = [layer, heads or dot]
        return super().from_parts(parts)


@dataclass(frozen=True)
class Ablate(InHeads, name="ablate", says=f"{IN_HEADS} {{by}}{{rows}}"):
    """A head without what it computes; ``by`` says what takes its place.

    "zero" and "mean" answer different questions: without any output, the layers above get a sum that they
    never met in training; with the mean, they lose only what is special to this sentence.
    """

    head: Heads = None
    # "zero": no output. "mean": its mean output over the sample. "uniform": equal weights on all visible
    # keys. "previous": all weight on the key before the query. "first": all weight on the first key. A row
    # whose key is hidden or does not exist keeps its own weights.
    by: Annotated[request.By, request.BY] = "zero"
    rows: Rows = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.by == "previous" and self.kind is AttentionKind.CROSS:
            raise InterventionError(
                "A query of cross-attention has no previous key: its keys belong to another sentence."
            )
        if self.by == "previous" and self.rows is not None and self.rows[0] == 0:
            raise InterventionError("Query 1 has no previous key, so it cannot look there.")

    @property
    def acts_on(self) -> Acts:
        return "output" if self.by in ("zero", "mean") else "weights"

    def on_weights(self, own: Tensor, visible: Tensor, first: int) -> Tensor:
        if self.acts_on == "output":
            return own
        rows, keys = positions(first, own.shape[-2], own), positions(0, own.shape[-1], own)
        if self.by == "uniform":
            pattern = visible / visible.sum(-1, keepdim=True).clamp_min(1)
        else:
            looked_at = rows - 1 if self.by == "previous" else rows * 0
            pattern = (looked_at[:, None] == keys) & visible
        pattern = pattern.to(own.dtype)
        return pattern.where((acting(self.rows, own, first) & pattern.gt(0).any(-1))[..., None], own)

    def put_out(self, own: Tensor, first: int, material: Tensor | None) -> Tensor:
        if self.acts_on == "weights":
            return own
        output = own.new_zeros(own.shape) if material is None else material.to(own).expand_as(own)
        return output.where(acting(self.rows, own, first)[..., None], own)


@dataclass(frozen=True)
class Scale(InHeads, name="scale", says=f"{IN_HEADS} times {{factor}}{{rows}}", acts_on="output"):
    """A head whose output is multiplied by a factor."""

    factor: Annotated[float, request.FACTOR]
    rows: Rows = None

    def put_out(self, own: Tensor, first: int, material: Tensor | None) -> Tensor:
        return (own * self.factor).where(acting(self.rows, own, first)[..., None], own)


@dataclass(frozen=True)
class SetRow(InHeads, name="row", says=f"{IN_HEADS}, query {{query}}: {{given}}", acts_on="weights"):
    """Given weights in one row of a head; the other visible keys share what is left, as before."""

    query: Annotated[int, request.QUERY]  # the row, from 0
    # keys, from 0, with their weights; set by pairs, by a map, or by the weights of keys 0, 1, …
    given: Annotated[tuple[tuple[int, float], ...], request.WEIGHTS]

    def check(self, shape: RunShape) -> None:
        super().check(shape)
        request.KEY.check(self.given[-1][0], self, shape)
        causal = shape.config.sites[self.kind].causal
        for key, weight in self.given:
            if weight and causal and key > self.query and not shape.lifted(self.query, key):
                raise InterventionError(
                    f"Query {self.query + 1} cannot attend to key {key + 1}, which comes after it."
                )

    def on_weights(self, own: Tensor, visible: Tensor, first: int) -> Tensor:
        if not 0 <= (row := self.query - first) < own.shape[-2]:
            return own
        weights = own.clone()
        weights[..., row, :] = self._shared(own[..., row, :], visible[..., row, :])
        return weights

    def _shared(self, own: Tensor, visible: Tensor) -> Tensor:
        """A row (…, keys): what is given, and the rest shared by the other visible keys."""
        keys = [key for key, _ in self.given]
        weights = own.double().new_tensor([weight for _, weight in self.given])
        if bool((weights * ~visible[..., keys]).any()):
            raise InterventionError(
                f"Query {self.query + 1} of {SITES[self.kind]} cannot attend to a key that is hidden."
            )
        others = visible.clone()
        others[..., keys] = False
        left = max(0.0, 1.0 - float(weights.sum()))
        rest = own.double() * others
        rest = rest.where(rest.sum(-1, keepdim=True) > 0, others.double())
        total = rest.sum(-1, keepdim=True)
        if left > request.SUM_LIMIT and not bool(total.gt(0).all()):
            raise InterventionError(
                f"The weights of query {self.query + 1} sum to {1 - left:g}, "
                "and no other key can take the rest."
            )
        row = rest * (left / total.clamp_min(1e-30))
        row[..., keys] = weights
        return row.to(own.dtype)


@dataclass(frozen=True)
class Temperature(
    InHeads, name="temperature", says=f"{IN_HEADS} with temperature {{temperature}}", acts_on="scores"
):
    """A head whose scores are divided by a number before the softmax: below 1 sharper, above 1 flatter."""

    temperature: Annotated[float, request.TEMPERATURE]

    def on_scores(self, own: Tensor, bias: Tensor | None, d_head: int) -> Tensor:
        return own / self.temperature


@dataclass(frozen=True)
class Unscaled(InHeads, name="unscaled", says=f"{IN_HEADS} without ÷ √d_k", acts_on="scores"):
    """A head without the division by √d_k (section 3.2.1): its scores are q·k, plus what positions add."""

    head: Heads = None

    def check(self, shape: RunShape) -> None:
        super().check(shape)
        if shape.config.sites[self.kind].score != "scaled_dot":
            raise InterventionError(f"The scores of this model's {SITES[self.kind]} are not divided by √d_k.")

    def on_scores(self, own: Tensor, bias: Tensor | None, d_head: int) -> Tensor:
        added = 0.0 if bias is None else bias
        return (own - added) * math.sqrt(d_head) + added


def positions(first: int, count: int, like: Tensor) -> Tensor:
    """(count,) positions from ``first`` on."""
    import torch

    return torch.arange(first, first + count, device=like.device)


def acting(rows: tuple[int, ...] | None, values: Tensor, first: int) -> Tensor:
    """(queries,) bool: the rows of ``values`` (…, queries, width) that a change acts on."""
    at = positions(first, values.shape[-2], values)
    return at >= 0 if rows is None else (at[:, None] == at.new_tensor(rows)).any(-1)


# Masks: cells that a query may attend to, or may not, decided before the softmax.


class Masking(Intervention):
    """A change of a mask: of one kind of attention, in one layer, or with None in all."""

    kind: AttentionKind
    layer: int | None
    allow: Cells
    forbid: Cells

    def changes(self, kind: AttentionKind, layer: int) -> bool:
        """True if it acts on this attention of this layer."""
        return kind is self.kind and self.layer in (None, layer)

    def masked(self, own: Tensor, first: int) -> Tensor:
        """A mask (…, queries, keys), True = may attend, after the change; ``first`` is the first query."""
        rows, columns = positions(first, own.shape[-2], own)[:, None], positions(0, own.shape[-1], own)
        return (own | covers(self.allow, rows, columns)) & ~covers(self.forbid, rows, columns)


@dataclass(frozen=True)
class Hide(
    Masking,
    name="hide",
    says="source token {source_token} is hidden from cross-attention",
    kind=AttentionKind.CROSS,
    layer=None,
    allow=(),
):
    """A source token that no cross-attention may attend to."""

    source_token: Annotated[int, request.SOURCE]  # from 0, as the model reads it

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "forbid", ((None, self.source_token),))


@dataclass(frozen=True)
class Mask(Masking, name="mask", order=("kind", "layer", "allow", "forbid")):
    """Cells of a kind's masks that are allowed, and cells that are forbidden, in every head.

    Lifting the causal mask is defined in a forced pass only: while decoding, later keys do not exist.
    """

    kind: Attention
    # cells (query, key), from 0, with None for every one, that may be attended to although the model's mask
    # hides them; or the name of a region: "all", "future" (every later key), "next" (the key after the
    # query), "self", "past"
    allow: request.CellsField = ()
    forbid: request.CellsField = ()  # cells to hide; they win over ``allow``
    layer: Annotated[int | None, request.LAYER, "all"] = None  # from 0; None for every layer

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.allow, self.forbid) == ((), ()):
            raise InterventionError("A mask is changed by cells to allow or to forbid; name some.")

    def check(self, shape: RunShape) -> None:
        request.LAYER.check(self.layer or 0, self, shape)
        super().check(shape)
        if shape.forced is None and shape.config.sites[self.kind].causal and self.lifts:
            raise InterventionError(
                "While decoding, later tokens do not exist yet; "
                "lift the causal mask in a forced pass, over a given translation."
            )

    @property
    def lifts(self) -> bool:
        """True if it allows keys after their query."""
        if isinstance(self.allow, str):
            return self.allow in ("all", "future", "next")
        return any(key is None or key > (query or 0) for query, key in self.allow)

    def allows(self, query: int, key: int) -> bool:
        """True if it allows a cell that is hidden without it."""
        return bool(covers(self.allow, query, key) and not covers(self.forbid, query, key))

    def __str__(self) -> str:
        where = SITES[self.kind] + ("" if self.layer is None else f", layer {self.layer + 1}")
        parts = [("allowed", self.allow), ("hidden", self.forbid)]
        return "; ".join([where, *(f"{what}: {request.cells_name(cells)}" for what, cells in parts if cells)])


def covers(cells: Cells, query: Any, key: Any) -> Any:
    """True if a query and a key, from 0, are among cells; both may be arrays that fit each other."""
    if isinstance(cells, str):
        return request.REGIONS[cells][1](query, key)
    inside = (query < 0) & (key < 0)
    for row, column in cells:
        in_row = query >= 0 if row is None else query == row
        inside = inside | (in_row & (key >= 0 if column is None else key == column))
    return inside


# A stack's arithmetic: only the residual stream shows what they did.


@dataclass(frozen=True)
class NoPositions(Intervention, name="nopositions", says="no positions in the {side}", needs_stream=True):
    """A side without positional encoding: nothing added, nothing rotated, no bias on the scores."""

    side: Annotated[Side, request.SIDE]  # "encoder" or "decoder"

    def check(self, shape: RunShape) -> None:
        super().check(shape)
        if shape.config.positions == "none":
            raise InterventionError(f"This model has no positions in the {self.side} that could be left out.")


@dataclass(frozen=True)
class DropSublayer(Intervention, name="dropsublayer", says="{sublayer} adds nothing", needs_stream=True):
    """A sub-layer that adds nothing to the stream; it is computed, and its update replaced by zero."""

    sublayer: Annotated[Sublayer, request.SUBLAYER]


@dataclass(frozen=True)
class DropNorm(Intervention, name="dropnorm", says="{place}", needs_stream=True):
    """A LayerNorm that passes its input on: that of a sub-layer, or of a side, at the end of its stack."""

    place: Annotated[Sublayer | Side, request.NORM]


# How changes are made: these take what a person types, and the classes say what is held.

choose: Callable[..., Choose] = Choose
forbid: Callable[..., Forbid] = Forbid
prefix: Callable[..., Prefix] = Prefix
edit_source: Callable[..., EditSource] = EditSource
drop_source: Callable[..., DropSource] = DropSource
ablate: Callable[..., Ablate] = Ablate
scale: Callable[..., Scale] = Scale
set_row: Callable[..., SetRow] = SetRow
temperature: Callable[..., Temperature] = Temperature
unscaled: Callable[..., Unscaled] = Unscaled
hide: Callable[..., Hide] = Hide
mask: Callable[..., Mask] = Mask
no_positions: Callable[..., NoPositions] = NoPositions


def drop_sublayer(side: str, layer: int, sublayer: str) -> DropSublayer:
    """Leaves out the "self_attention", "cross_attention" or "feed_forward" of a layer, from 0."""
    return DropSublayer(request.sublayer_of(side, layer, sublayer))


def drop_norm(side: Any, layer: int | None = None, sublayer: str | None = None) -> DropNorm:
    """Leaves out a LayerNorm: that of a sub-layer, or without a layer the one at the end of a stack."""
    return DropNorm(
        side if layer is None and sublayer is None else request.sublayer_of(side, layer, sublayer)
    )
