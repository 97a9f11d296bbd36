"""Interventions inside one layer's heads: their scores, their weights, their output.

Each says what it makes of a tensor that ends in (queries, keys) or (queries, d_head): a new one, or its own
input if it does not concern it. ``first`` is the position of the first query, from 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from transformer.config import AttentionKind
from transformer.interventions.base import SITES, InterventionError, Setting, within
from transformer.interventions.fields import (
    Heads,
    Kind,
    LayerOfHeads,
    Number,
    Plain,
    Query,
    Several,
    Some,
    Whole,
    counted,
    in_rows,
)
from transformer.interventions.written import Field, Intervention

if TYPE_CHECKING:  # an address holds changes, and needs no PyTorch
    from torch import Tensor

__all__ = ["Ablate", "Scale", "SetRow", "Temperature", "Unscaled"]
__all__ += ["ablate", "scale", "set_row", "temperature", "unscaled"]

By = Literal["zero", "mean", "uniform", "previous", "first"]
Acts = Literal["scores", "weights", "output"]
"""Parts of a head that a change may act on."""
OUTPUTS = ("zero", "mean")
"""Ablations that put another output in place of the head's; the others put other weights."""
SUM_LIMIT = 1e-6
"""Excess above 1 that the sum of given weights may have."""


class InAttention(Intervention):
    """A change inside single heads."""

    @property
    def acts_on(self) -> Acts:
        """The part of a head that it changes."""
        raise NotImplementedError

    def heads(self, n_heads: int) -> tuple[int, ...]:
        """The heads that it changes; none if it acts on something else."""
        raise NotImplementedError

    def moved(self, heads: tuple[int, ...]) -> InAttention:
        """The same at other heads of its layer."""
        raise NotImplementedError

    def heads_of(self, kind: AttentionKind, layer: int, n_heads: int) -> tuple[int, ...]:
        """The heads of an attention sub-layer that it changes."""
        raise NotImplementedError

    def on_scores(
        self,
        own: Tensor,  # the scores (…, queries, keys)
        bias: Tensor | None,  # the part of them that positions add, undivided by √d_k; None without any
        d_head: int,  # d_k
    ) -> Tensor:
        """One head's scores, as the softmax receives them."""
        return own

    def on_weights(self, own: Tensor, visible: Tensor, first: int) -> Tensor:
        """One head's weights (…, queries, keys); ``visible``, in the same shape, is the mask."""
        return own

    def put_out(self, own: Tensor, first: int, material: Tensor | None) -> Tensor:
        """One head's output (…, queries, d_head); ``material`` is what the change puts in."""
        return own


class InHeads(InAttention):
    """A change of one head of a layer, of several, or of all."""

    kind: Field[AttentionKind, AttentionKind | str] = Kind()  # "encoder", "decoder" or "cross"
    layer: Plain[int] = LayerOfHeads("The layer")  # its layer, from 0
    head: Some = Heads()  # from 0; several; None for all of the layer

    def heads(self, n_heads: int) -> tuple[int, ...]:
        return tuple(range(n_heads)) if self.head is None else self.head

    def moved(self, heads: tuple[int, ...]) -> InHeads:
        return replace(self, head=heads)

    def heads_of(self, kind: AttentionKind, layer: int, n_heads: int) -> tuple[int, ...]:
        return self.heads(n_heads) if (self.kind, self.layer) == (kind, layer) else ()

    def in_head(self, kind: AttentionKind, layer: int, head: int) -> bool:
        """True if it changes this head."""
        return head in self.heads_of(kind, layer, head + 1)

    @property
    def place(self) -> str:
        """Its place, as people read it."""
        named = "every head" if self.head is None else counted("head", self.head)
        return f"{SITES[self.kind]}, layer {self.layer + 1}, {named}"


class ByField(Field[Any, Any]):
    def validate(self, value: Any) -> By:
        if value not in get_args(By):
            raise InterventionError(f"A head is ablated by {', '.join(get_args(By))}, not by {value!r:.40}.")
        made: By = value
        return made


class Ablate(InHeads):
    """A head without what it computes; ``by`` says what takes its place.

    "zero" and "mean" answer different questions: without any output, the layers above get a sum that they
    never met in training; with the mean, they lose only what is special to this sentence.
    """

    name: ClassVar[str] = "ablate"
    head: Some = Heads(None)
    # "zero": no output. "mean": its mean output over the sample. "uniform": equal weights on all visible
    # keys. "previous": all weight on the key before the query. "first": all weight on the first key. A row
    # whose key is hidden or does not exist keeps its own weights.
    by: Field[By, str] = ByField("zero")
    rows: Some = Several(Query("The row"), None)  # queries, from 0; None for all

    def __post_init__(self) -> None:
        if self.by == "previous" and self.kind is AttentionKind.CROSS:
            raise InterventionError(
                "A query of cross-attention has no previous key: its keys belong to another sentence."
            )
        if self.by == "previous" and self.rows is not None and self.rows[0] == 0:
            raise InterventionError("Query 1 has no previous key, so it cannot look there.")

    @property
    def acts_on(self) -> Acts:
        return "output" if self.by in OUTPUTS else "weights"

    def on_weights(self, own: Tensor, visible: Tensor, first: int) -> Tensor:
        if self.by in OUTPUTS:
            return own
        made = self._pattern(visible, first).to(own.dtype)
        return made.where((acting(self.rows, own, first) & made.gt(0).any(-1))[..., None], own)

    def _pattern(self, visible: Tensor, first: int) -> Tensor:
        """(…, queries, keys): the weights of a fixed pattern; a row that has no such key is all zeros."""
        if self.by == "uniform":
            return visible / visible.sum(-1, keepdim=True).clamp_min(1)
        queries, keys = visible.shape[-2:]
        rows = positions(first, queries, visible)
        wanted = rows - 1 if self.by == "previous" else rows * 0
        return (wanted[:, None] == positions(0, keys, visible)) & visible

    def put_out(self, own: Tensor, first: int, material: Tensor | None) -> Tensor:
        if self.by not in OUTPUTS:
            return own
        made = own.new_zeros(own.shape) if material is None else material.to(own).expand_as(own)
        return made.where(acting(self.rows, own, first)[..., None], own)

    def __str__(self) -> str:
        what = {
            "zero": "gives no output",
            "mean": "gives its mean output",
            "uniform": "looks at all keys alike",
            "previous": "looks at the key before the query",
            "first": "looks at the first key",
        }[self.by]
        return f"{self.place} {what}{in_rows(self.rows)}"


class Scale(InHeads):
    """A head whose output is multiplied by a factor."""

    name: ClassVar[str] = "scale"
    acts_on: ClassVar[Acts] = "output"
    factor: Plain[float] = Number("The factor")
    rows: Some = Several(Query("The row"), None)  # queries, from 0; None for all

    def put_out(self, own: Tensor, first: int, material: Tensor | None) -> Tensor:
        return (own * self.factor).where(acting(self.rows, own, first)[..., None], own)

    def __str__(self) -> str:
        return f"{self.place} times {self.factor:g}{in_rows(self.rows)}"


_KEY, _WEIGHT = Whole("The key"), Number("The weight", 0.0, 1.0)


class _Weights(Field[Any, Any]):
    """Keys with their weights: pairs, a map, or the weights of keys 0, 1, …."""

    def validate(self, value: Any) -> tuple[tuple[int, float], ...]:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise InterventionError("The weights of a row are numbers, or a map from keys to numbers.")
        each = value.items() if isinstance(value, Mapping) else enumerate(value)
        pairs = [weight if isinstance(weight, tuple) else (key, weight) for key, weight in each]
        given = tuple(sorted((_KEY.validate(key), _WEIGHT.validate(weight)) for key, weight in pairs))
        if not 1 <= len(given) <= 4096 or len(dict(given)) != len(given):
            raise InterventionError("A row is set by 1 to 4,096 weights, one for each key.")
        if sum(weight for _, weight in given) > 1 + SUM_LIMIT:
            raise InterventionError("The weights of a row sum to more than 1.")
        return given

    def to_text(self, value: tuple[tuple[int, float], ...], parts: list[str]) -> None:
        parts += [part for key, weight in value for part in (_KEY.write(key), _WEIGHT.write(weight))]

    def from_text(self, parts: list[str]) -> dict[int, float]:
        pairs = zip(map(_KEY.read, parts[::2]), map(_WEIGHT.read, parts[1::2]), strict=True)
        found = self.from_json(list(pairs))
        parts.clear()
        return found

    def from_json(self, value: Any) -> dict[int, float]:
        pairs = dict(value)
        if len(pairs) != len(value):
            raise InterventionError("A row is set by one weight for each key.")
        return pairs


class SetRow(InHeads):
    """Given weights in one row of a head; the other visible keys share what is left, as before."""

    name: ClassVar[str] = "row"
    acts_on: ClassVar[Acts] = "weights"
    query: Plain[int] = Query("The query")  # the row, from 0
    # keys, from 0, with their weights; or the weights of keys 0, 1, …
    given: Field[tuple[tuple[int, float], ...], Mapping[int, float] | Sequence[float]] = _Weights()

    def check(self, setting: Setting) -> None:
        super().check(setting)
        keys = setting.lengths(self.kind)[1]
        within(self.given[-1][0], keys, "key", f" in {SITES[self.kind]}", f"there are {keys:,}")
        for key, weight in self.given:
            later = setting.config.sites[self.kind].causal and key > self.query
            if weight and later and not setting.lifted(self.query, key):
                raise InterventionError(
                    f"Query {self.query + 1} cannot attend to key {key + 1}, which comes after it."
                )

    def on_weights(self, own: Tensor, visible: Tensor, first: int) -> Tensor:
        if not 0 <= (row := self.query - first) < own.shape[-2]:
            return own
        made = own.clone()
        made[..., row, :] = self._shared(own[..., row, :], visible[..., row, :])
        return made

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
        if left > SUM_LIMIT and not bool(total.gt(0).all()):
            raise InterventionError(
                f"The weights of query {self.query + 1} sum to {1 - left:g}, "
                "and no other key can take the rest."
            )
        made = rest * (left / total.clamp_min(1e-30))
        made[..., keys] = weights
        return made.to(own.dtype)

    def __str__(self) -> str:
        given = ", ".join(f"{weight:g} on key {key + 1}" for key, weight in self.given[:4])
        return f"{self.place}, query {self.query + 1}: {given}{' …' * (len(self.given) > 4)}"


class Temperature(InHeads):
    """A head whose scores are divided by a number before the softmax: below 1 sharper, above 1 flatter."""

    name: ClassVar[str] = "temperature"
    acts_on: ClassVar[Acts] = "scores"
    temperature: Plain[float] = Number("The temperature", 0.001, 1000.0)

    def on_scores(self, own: Tensor, bias: Tensor | None, d_head: int) -> Tensor:
        return own / self.temperature

    def __str__(self) -> str:
        return f"{self.place} with temperature {self.temperature:g}"


class Unscaled(InHeads):
    """A head without the division by √d_k (section 3.2.1): its scores are q·k, plus what positions add."""

    name: ClassVar[str] = "unscaled"
    acts_on: ClassVar[Acts] = "scores"
    head: Some = Heads(None)

    def check(self, setting: Setting) -> None:
        super().check(setting)
        if setting.config.sites[self.kind].score != "scaled_dot":
            raise InterventionError(f"The scores of this model's {SITES[self.kind]} are not divided by √d_k.")

    def on_scores(self, own: Tensor, bias: Tensor | None, d_head: int) -> Tensor:
        added = 0.0 if bias is None else bias
        return (own - added) * math.sqrt(d_head) + added

    def __str__(self) -> str:
        return f"{self.place} without ÷ √d_k"


ablate, scale, set_row, temperature, unscaled = Ablate, Scale, SetRow, Temperature, Unscaled


def positions(first: int, count: int, like: Tensor) -> Tensor:
    """(count,) positions from ``first`` on."""
    import torch

    return torch.arange(first, first + count, device=like.device)


def acting(rows: tuple[int, ...] | None, values: Tensor, first: int) -> Tensor:
    """(queries,) bool: the rows of ``values`` (…, queries, width) that a change acts on."""
    count = values.shape[-2]
    if rows is None:
        return values.new_ones(count).bool()
    at = positions(first, count, values)
    return (at[:, None] == at.new_tensor(rows)).any(-1)
