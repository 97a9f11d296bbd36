"""One head as arrays, the input of every figure, and the checks that were run on them.

No PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer.config import AttentionKind, ScoreName

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[np.float32]
BoolArray = NDArray[np.bool_]
PLACES = "places"
"""Name of the check that needs the model: whether every recording belongs to its layer, head and
step."""
AS_RECORDED = " (as recorded)"
"""Suffix in the name of a check whose value comes from a file, because repeating it needs the
model."""


@dataclass(frozen=True)
class Check:
    """One check of an audit: the worst value found, and the limit it must stay within."""

    name: str
    value: float
    limit: float

    @property
    def passed(self) -> bool:
        """Whether the value is a number within the limit."""
        return self.value <= self.limit


def difference(recorded: ArrayLike | None, expected: ArrayLike | None, smallest: float) -> float:
    """Largest difference as a share of the largest number, or of ``smallest`` if it is larger.

    Infinite if the shapes differ, or if only one of both is there; NaN if any number is none.
    """
    if recorded is None or expected is None:
        return 0.0 if recorded is expected else math.inf
    left = np.asarray(recorded, np.float64)
    right = np.asarray(expected, np.float64)
    if left.shape != right.shape:
        return math.inf
    scale = max(smallest, float(np.abs(right).max(initial=0.0)))
    return float(np.abs(left - right).max(initial=0.0)) / scale


def difference_as_given(
    recorded: ArrayLike | None, expected: ArrayLike | None, smallest: float
) -> float:
    """As ``difference``, of numbers that nobody checked: what is no number may be so in both."""
    if recorded is None or expected is None:
        return difference(recorded, expected, smallest)
    left = np.asarray(recorded, np.float64)
    right = np.asarray(expected, np.float64)
    known = np.isfinite(right)
    if left.shape != right.shape or (np.isfinite(left) != known).any():
        return math.inf
    return difference(left[known], right[known], smallest)


def worst(*values: float) -> float:
    """The largest value; NaN if any value is NaN, because NaN is never within a limit."""
    return math.nan if any(value != value for value in values) else max(values, default=0.0)


@dataclass(frozen=True)
class AuditReport:
    """The checks that were run on a trace."""

    checks: tuple[Check, ...]  # the checks
    # what was changed in the run, one sentence each; the checks hold for the changed run
    changes: tuple[str, ...] = ()
    proofs: tuple[str, ...] = ()  # what the checks of a derived picture prove, one sentence each
    unmade: tuple[str, ...] = ()  # what could not be checked
    claim: str = ""  # what the badge says instead of "verified", such as "sums up"
    # what no check could hold for, since a function of the user changed the run there
    skipped: tuple[str, ...] = ()
    # whose numbers these are, if nothing made or checked them here: "your numbers, not checked"
    unchecked: str = ""
    remarks: tuple[str, ...] = ()  # what is to be said of such numbers, a sentence each

    def joined(self, other: AuditReport) -> AuditReport:
        """Both reports as one; the claim is the other's, if it makes one."""
        return AuditReport(
            checks=self.checks + other.checks,
            changes=_once(self.changes + other.changes),
            proofs=_once(self.proofs + other.proofs),
            unmade=_once(self.unmade + other.unmade),
            claim=other.claim or self.claim,
            skipped=_once(self.skipped + other.skipped),
            unchecked=other.unchecked or self.unchecked,
            remarks=_once(self.remarks + other.remarks),
        )

    @property
    def imported(self) -> bool:
        """Whether some values were only read from a file."""
        return any(check.name.endswith(AS_RECORDED) for check in self.checks)

    @property
    def placed(self) -> bool:
        """Whether every recording was found to belong to its layer, head and step; that takes the
        model."""
        return any(check.name == PLACES and check.passed for check in self.checks)

    @property
    def passed(self) -> bool:
        """Whether there was at least one check and all passed."""
        return bool(self.checks) and all(check.passed for check in self.checks)


def _once(sentences: tuple[str, ...]) -> tuple[str, ...]:
    """Without those that were said before."""
    return tuple(dict.fromkeys(sentences))


@dataclass(frozen=True)
class Window:
    """A rectangle of an attention map; positions count from 0, stops are exclusive."""

    query_start: int
    query_stop: int
    key_start: int
    key_stop: int

    @property
    def queries(self) -> slice:
        """The rows."""
        return slice(self.query_start, self.query_stop)

    @property
    def keys(self) -> slice:
        """The columns."""
        return slice(self.key_start, self.key_stop)


@dataclass(frozen=True)
class HeadLabels:
    """Tokens along a map: those that rows read, those that rows predict (None in the encoder), the
    keys."""

    queries: tuple[str, ...]
    predicted: tuple[str, ...] | None
    keys: tuple[str, ...]

    def of(self, window: Window) -> HeadLabels:
        """Those of a part of the map."""
        predicted = None if self.predicted is None else self.predicted[window.queries]
        return HeadLabels(self.queries[window.queries], predicted, self.keys[window.keys])


@dataclass(frozen=True, repr=False, kw_only=True)
class HeadMap:
    """One head, or a window of it, as a map: what figures and files need of it."""

    kind: AttentionKind  # which attention
    layer: int  # layer, from 0
    head: int  # head, from 0
    model: str  # name of the model
    norm: str  # where LayerNorm stands, "pre" or "post"; "none" without any
    # tokens of the rows; in decoder and cross-attention, the token that each row reads
    query_tokens: tuple[str, ...]
    # in decoder and cross-attention, the token that each row predicts; else None
    predicted_tokens: tuple[str, ...] | None
    key_tokens: tuple[str, ...]  # tokens of the columns
    window: Window  # which part of the whole map this is
    # (queries, keys) float32, scaled, with bias, before the mask; None if they are not known
    scores: Array | None
    mask: BoolArray  # (queries, keys) bool, True = may attend
    weights: Array  # (queries, keys) float32
    # the audit; or what makes it of this very map, so that a copy with other arrays is checked anew
    report: AuditReport | Callable[[HeadMap], AuditReport]
    score: ScoreName = "scaled_dot"  # how the scores come from queries and keys
    # (queries,) where each query looks in local attention, counted from 0; otherwise None
    centres: Array | None = None
    reach: int = 0  # how far from its centre such a query sees; otherwise 0
    # what the numbers in `weights` are: weights, or shares of another measure
    # (`explorer.lenses.measures.stream.shares`)
    measure: str = "weight"
    # (queries, keys) float32 that measure itself; None for weights
    measured: Array | None = None
    title: str = ""  # what people call the attention, if not by its kind
    # (queries,) what the whole rows sum to, where that may be anything; None if each sums to 1
    sums: Array | None = None

    @cached_property
    def audit(self) -> AuditReport:
        """Checks of the trace and of this view's arrays, made when somebody asks for them first."""
        return self.report(self) if callable(self.report) else self.report


@dataclass(frozen=True, repr=False, kw_only=True)
class HeadView(HeadMap):
    """A map together with the vectors that it was computed from, float32."""

    scores: Array
    query: Array  # (queries, d_head)
    key: Array  # (keys, d_head)
    value: Array  # (keys, d_head)
    output: Array  # (queries, d_head), weights @ values as the model used it


def sealed(view: HeadMap, report: AuditReport) -> HeadMap:
    """The same map with an audit of its own; a copy with other arrays, tokens or place fails it."""

    def compared(drawn: HeadMap) -> AuditReport:
        arrays = worst(*(_equal(getattr(drawn, name), getattr(view, name)) for name in NUMBERS))
        renamed = any(getattr(drawn, name) != getattr(view, name) for name in NAMES)
        checks = Check("arrays drawn", arrays, 0.0), Check("labels", float(renamed), 0.0)
        return report.joined(AuditReport(tuple(check for check in checks if not check.passed)))

    return replace(view, report=compared)


NUMBERS = ("weights", "mask", "scores", "measured")
"""The arrays of a map that figures draw."""
NAMES = (
    "kind",
    "title",
    "layer",
    "head",
    "measure",
    "window",
    "query_tokens",
    "predicted_tokens",
    "key_tokens",
)
"""What figures and captions say of a map."""


def _equal(one: ArrayLike | None, other: ArrayLike | None) -> float:
    """0 if two arrays are the same, with NaN in the same places; otherwise infinite."""
    if one is other:
        return 0.0
    if one is None or other is None:
        return math.inf
    left = np.asarray(one, np.float64)
    right = np.asarray(other, np.float64)
    return 0.0 if np.array_equal(left, right, equal_nan=True) else math.inf


def read_only(tensor: Tensor) -> Array:
    """The tensor's numbers without a copy, and read-only because a trace is shared."""
    array: Array = tensor.numpy()
    array.flags.writeable = False
    return array
