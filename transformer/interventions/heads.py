"""Interventions inside one layer's heads: their scores, their weights, their output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from transformer.interventions.base import (
    SITES,
    Intervention,
    InterventionError,
    Setting,
    counted,
    finite,
    kind_of,
    several,
    whole,
)
from transformer.model.sites import AttentionKind

By = Literal["zero", "mean", "uniform", "previous", "first"]
Acts = Literal["scores", "weights", "output"]
"""What a change inside a head changes."""
OUTPUTS = ("zero", "mean")
"""Ablations that put another output in place of the head's; the others put other weights."""
SUM_LIMIT = 1e-6
"""How far given weights may sum above 1."""


class InAttention:
    """A change inside single heads."""

    @property
    def acts_on(self) -> Acts:
        """What it changes."""
        raise NotImplementedError


@dataclass(frozen=True)
class InHeads(Intervention, InAttention):
    """A change of one head of a layer, of several, or of all."""

    kind: AttentionKind  # which attention
    layer: int  # its layer, from 0
    head: tuple[int, ...] | None  # heads, from 0; None for all of the layer

    def heads(self, n_heads: int) -> tuple[int, ...]:
        """The heads that it changes."""
        return tuple(range(n_heads)) if self.head is None else self.head

    def in_head(self, kind: AttentionKind, layer: int, head: int) -> bool:
        """Whether it changes this head."""
        return (self.kind, self.layer) == (kind, layer) and (self.head is None or head in self.head)

    def check(self, setting: Setting) -> None:
        setting.site(self.kind, self.layer)
        n_heads = setting.config.n_heads
        if self.head is not None and self.head[-1] >= n_heads:
            raise InterventionError(
                f"There is no head {self.head[-1] + 1} of {SITES[self.kind]}: a layer has {n_heads}, "
                "counted from 1."
            )

    @property
    def place(self) -> str:
        """Where it acts, as people read it."""
        named = "every head" if self.head is None else f"head{'s'[: len(self.head) > 1]} {counted(self.head)}"
        return f"{SITES[self.kind]}, layer {self.layer + 1}, {named}"


@dataclass(frozen=True)
class Ablate(InHeads):
    """A head without what it computes; ``by`` says what takes its place."""

    name: ClassVar[str] = "ablate"
    # "zero": no output. "mean": its mean output over the sample. "uniform": equal weights on all visible
    # keys. "previous": all weight on the key before the query. "first": all weight on the first key. A row
    # whose key is hidden or does not exist keeps its own weights.
    by: By = "zero"
    rows: tuple[int, ...] | None = None  # the queries, from 0, that it acts on; None for all

    @property
    def acts_on(self) -> Acts:
        return "output" if self.by in OUTPUTS else "weights"

    def check(self, setting: Setting) -> None:
        super().check(setting)
        _check_rows(self, self.rows, setting)

    def __str__(self) -> str:
        what = {
            "zero": "gives no output",
            "mean": "gives its mean output",
            "uniform": "looks at all keys alike",
            "previous": "looks at the key before the query",
            "first": "looks at the first key",
        }[self.by]
        return f"{self.place} {what}{_in_rows(self.rows)}"


@dataclass(frozen=True)
class Scale(InHeads):
    """A head whose output is multiplied by a factor."""

    name: ClassVar[str] = "scale"
    factor: float = 1.0  # the factor
    rows: tuple[int, ...] | None = None  # the queries, from 0, that it acts on; None for all

    @property
    def acts_on(self) -> Acts:
        return "output"

    def check(self, setting: Setting) -> None:
        super().check(setting)
        _check_rows(self, self.rows, setting)

    def __str__(self) -> str:
        return f"{self.place} times {self.factor:g}{_in_rows(self.rows)}"


@dataclass(frozen=True)
class SetRow(InHeads):
    """Given weights in one row of a head; the other visible keys share what is left, as before."""

    name: ClassVar[str] = "row"
    query: int = 0  # the row, from 0
    given: tuple[tuple[int, float], ...] = ()  # keys, from 0, with their weights

    @property
    def acts_on(self) -> Acts:
        return "weights"

    def check(self, setting: Setting) -> None:
        super().check(setting)
        _check_rows(self, (self.query,), setting)
        keys = setting.lengths(self.kind)[1]
        if self.given[-1][0] >= keys:
            raise InterventionError(
                f"There is no key {self.given[-1][0] + 1} in {SITES[self.kind]}: there are {keys:,}, "
                "counted from 1."
            )
        for key, weight in self.given:
            later = setting.config.sites[self.kind].causal and key > self.query
            if weight and later and not setting.lifted(self.query, key):
                raise InterventionError(
                    f"Query {self.query + 1} cannot attend to key {key + 1}, which comes after it."
                )

    def __str__(self) -> str:
        given = ", ".join(f"{weight:g} on key {key + 1}" for key, weight in self.given[:4])
        return f"{self.place}, query {self.query + 1}: {given}{' …' * (len(self.given) > 4)}"


@dataclass(frozen=True)
class Temperature(InHeads):
    """A head whose scores are divided by a number before the softmax."""

    name: ClassVar[str] = "temperature"
    temperature: float = 1.0

    @property
    def acts_on(self) -> Acts:
        return "scores"

    def __str__(self) -> str:
        return f"{self.place} with temperature {self.temperature:g}"


@dataclass(frozen=True)
class Unscaled(InHeads):
    """A head without the division by √d_k: its scores are q·k, plus what positions add."""

    name: ClassVar[str] = "unscaled"

    @property
    def acts_on(self) -> Acts:
        return "scores"

    def check(self, setting: Setting) -> None:
        super().check(setting)
        if setting.config.sites[self.kind].score != "scaled_dot":
            raise InterventionError(f"The scores of this model's {SITES[self.kind]} are not divided by √d_k.")

    def __str__(self) -> str:
        return f"{self.place} without ÷ √d_k"


def ablate(
    kind: AttentionKind | str,  # "encoder", "decoder" or "cross"
    layer: int,  # layer, from 0
    head: int | Iterable[int] | None = None,  # head, from 0; several; or None for all heads of the layer
    # what stands in its place, see ``Ablate``. "zero" and "mean" answer different questions: without any
    # output, the layers above get a sum that they never met in training; with the mean, they lose only what
    # is special to this sentence
    by: str = "zero",
    rows: int | Iterable[int] | None = None,  # queries, from 0; None for all
) -> Ablate:
    """Takes away what a head computes.

    Raises:
        InterventionError: An argument is out of range; "previous" in cross-attention, whose keys are of
            another sentence, or asked for row 0, which has no key before it.
    """
    kind, rows = kind_of(kind), None if rows is None else several(rows, "The row")
    if by not in get_args(By):
        raise InterventionError(f"A head is ablated by {', '.join(get_args(By))}, not by {by!r:.40}.")
    if by == "previous" and kind is AttentionKind.CROSS:
        raise InterventionError(
            "A query of cross-attention has no previous key: its keys belong to another sentence."
        )
    if by == "previous" and rows is not None and rows[0] == 0:
        raise InterventionError("Query 1 has no previous key, so it cannot look there.")
    return Ablate(*_place(kind, layer, head), by, rows)  # type: ignore[arg-type]


def scale(
    kind: AttentionKind | str,
    layer: int,
    head: int | Iterable[int] | None,
    factor: float,
    rows: int | Iterable[int] | None = None,
) -> Scale:
    """Multiplies the output of heads by a factor; other arguments as ``ablate``."""
    chosen = None if rows is None else several(rows, "The row")
    return Scale(*_place(kind, layer, head), finite(factor, "The factor"), chosen)


def set_row(
    kind: AttentionKind | str,  # "encoder", "decoder" or "cross"
    layer: int,  # layer, from 0
    head: int | Iterable[int] | None,  # head, from 0; several; or None for all heads of the layer
    query: int,  # the row, from 0
    # Keys, from 0, with their weights; or the weights of keys 0, 1, …. Keys that are not named share what is
    # left of 1, in the proportions of the model's own weights.
    weights: Mapping[int, float] | Sequence[float],
) -> SetRow:
    """Gives one row of a head other weights."""
    pairs = weights.items() if isinstance(weights, Mapping) else enumerate(_sequence(weights))
    given = tuple(sorted((whole(key, "The key"), finite(w, "The weight", 0.0, 1.0)) for key, w in pairs))
    if not 1 <= len(given) <= 4096 or len(dict(given)) != len(given):
        raise InterventionError("A row is set by 1 to 4,096 weights, one for each key.")
    if sum(weight for _, weight in given) > 1 + SUM_LIMIT:
        raise InterventionError("The weights of a row sum to more than 1.")
    return SetRow(*_place(kind, layer, head), whole(query, "The query"), given)


def temperature(
    kind: AttentionKind | str, layer: int, head: int | Iterable[int] | None, value: float
) -> Temperature:
    """Divides the scores of heads by a number: below 1 sharper, above 1 flatter."""
    return Temperature(*_place(kind, layer, head), finite(value, "The temperature", 0.001, 1000.0))


def unscaled(kind: AttentionKind | str, layer: int, head: int | Iterable[int] | None = None) -> Unscaled:
    """Leaves out the division by √d_k (section 3.2.1)."""
    return Unscaled(*_place(kind, layer, head))


def _place(
    kind: AttentionKind | str, layer: int, head: int | Iterable[int] | None
) -> tuple[AttentionKind, int, tuple[int, ...] | None]:
    return kind_of(kind), whole(layer, "The layer"), None if head is None else several(head, "The head")


def _sequence(weights: object) -> Iterable[float]:
    if isinstance(weights, str) or not isinstance(weights, Iterable):
        raise InterventionError("The weights of a row are numbers, or a map from keys to numbers.")
    return weights


def _check_rows(change: InHeads, rows: tuple[int, ...] | None, setting: Setting) -> None:
    queries = setting.lengths(change.kind)[0]
    if rows is not None and rows[-1] >= queries:
        raise InterventionError(
            f"There is no query {rows[-1] + 1} in {SITES[change.kind]}: there are at most {queries:,}, "
            "counted from 1."
        )


def _in_rows(rows: tuple[int, ...] | None) -> str:
    return "" if rows is None else f" in row{'s'[: len(rows) > 1]} {counted(rows)}"
