"""A question about a run, where it is asked, and the answer as measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from transformer.config import AttentionKind
from transformer.text.kinds import check_fields, one_of, whole

ROUNDING = 0.01
"""Numbers are shown with two decimals."""
QUANTITIES = (
    *("largest-key", "head-effect", "candidate", "masked", "visible", "difference", "role", "entropy"),
    *("unsure", "search", "build"),
)
"""Names of all that can be asked."""
KINDS = tuple(map(str, AttentionKind))
KEYS = ("next", "previous", "same", "first")
ROLES = ("previous", "next", "same", "first", "end", "aligner")
AMONG = ("rows", "heads", "scale")
AGAINST = ("greedy", "sum")
GOALS = ("copy", "average")
CHANGES = (
    *("head", "uniform", "layer", "unscaled", "forward"),
    *("encoder-positions", "decoder-positions", "source"),
)
MOST = 4
"""Most options, ranks and changes of a question."""


def number(value: float, form: str = ".2f") -> str:
    """A number with a true minus sign; one that is rounded to zero has no sign."""
    text = format(value, form)
    return text.replace("-", "−") if text.strip("+-0.%") else text.lstrip("+-")


@dataclass(frozen=True)
class Question:
    """A question as a lesson writes it; it names no token and no number."""

    quantity: Annotated[str, one_of(*QUANTITIES)]
    kind: Annotated[str, one_of(*KINDS)] = "cross"  # the attention that it is about
    key: Annotated[str, one_of(*KEYS)] = "next"  # of masked: the key, seen from the row
    rank: Annotated[int, whole(1, MOST)] = 1  # of candidate: 1 asks for the most probable token, …
    role: Annotated[str, one_of(*ROLES)] = "previous"  # of role: where the head looks
    among: Annotated[str, one_of(*AMONG)] = "rows"  # of entropy: what is compared
    # of search: greedy search, or the ranking by the bare sum of log p
    against: Annotated[str, one_of(*AGAINST)] = "greedy"
    goal: Annotated[str, one_of(*GOALS)] = "copy"  # of build: what the query is to do
    # of difference: one change, or several of which one costs most
    changes: tuple[Annotated[str, one_of(*CHANGES)], ...] = ()

    def problem(self) -> str | None:
        """The mistake in the question, in a sentence; None if nothing is."""
        try:
            check_fields(self)
        except ValueError as error:
            return str(error)
        if len(self.changes) > MOST:
            return f"changes must be a list of at most {MOST}."
        if self.quantity == "difference" and not self.changes:
            return "changes must name at least one change."
        return None


@dataclass(frozen=True)
class Viewpoint:
    """Where in a run a question is asked; everything counts from 0."""

    step: int  # the decode step
    source: int  # the source token
    heads: Mapping[str, tuple[int, int]]  # layer and head by kind of attention

    def row(self, kind: AttentionKind) -> int:
        """The query of a kind that the cursor marks."""
        return self.source if kind is AttentionKind.ENCODER else self.step


@dataclass(frozen=True)
class Option:
    """A possible answer."""

    name: str  # what it is called
    value: float  # what was measured of it
    shown: str  # that number as people read it, with its unit; empty for a rule


@dataclass(frozen=True)
class Measured:
    """A question with its answer."""

    asks: str  # the question in one sentence
    options: tuple[Option, ...]  # in an order that tells nothing
    best: int  # the right one
    exact: bool = False  # whether the answer is a count or a rule, and no two options can come close
    why: str = ""  # the reason of an exact answer, with its numbers

    @property
    def margin(self) -> float:
        """Distance of the best value to the nearest other one; infinite for an exact answer."""
        if self.exact:
            return float("inf")
        best = self.options[self.best].value
        others = (each.value for i, each in enumerate(self.options) if i != self.best)
        return min((abs(best - each) for each in others), default=0.0)

    @property
    def asked(self) -> bool:
        """True if the best exceeds the second by twice what rounding hides."""
        return self.margin >= 2 * ROUNDING

    def reason(self, choice: int) -> str:
        """Why a choice is right or wrong, in the numbers of this run."""
        if self.exact:
            return self.why
        best, chosen = self.options[self.best], self.options[choice]
        if choice != self.best:
            return f"You chose {chosen.name}: {chosen.shown}. The answer is {best.name}: {best.shown}."
        others = (each for i, each in enumerate(self.options) if i != choice)
        second = min(others, key=lambda each: abs(each.value - best.value))
        return f"{best.name}: {best.shown}. The nearest other one is {second.name}: {second.shown}."
