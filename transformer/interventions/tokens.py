"""Changes of tokens. They never change the model's distribution: log-probabilities stay its own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from transformer.interventions import fields, words
from transformer.interventions.base import Intervention, InterventionError, RunShape, exact
from transformer.interventions.fields import Index, One, OrNone, Several

Token = int | str
"""A token by its id, or by its piece, such as "▁ist"."""
TokenField = Annotated[Token, One(fields.Token())]
Step = Annotated[int, One(Index("step"))]
TypedPosition = Annotated[int, One(Index("source token", counts="typed"))]


def ids_of(*tokens: Token) -> tuple[int, ...]:
    """Those of some tokens that are named by an id."""
    return tuple(token for token in tokens if isinstance(token, int))


@dataclass(frozen=True)
class Choose(Intervention):
    name = "choose"
    changes = "tokens"
    steers = True
    step: Step
    token: TokenField

    @property
    def named_ids(self) -> tuple[int, ...]:
        return ids_of(self.token)

    @property
    def decides(self) -> tuple[str, ...]:
        return (words.number("step", self.step),)

    def __str__(self) -> str:
        return f"{words.number('step', self.step)} writes {words.quoted(self.token)}"


def choose(step: int, token: Token) -> Choose:
    """One token at one step of the output, in every live hypothesis; no output ends before that
    step."""
    return exact(Choose, step=step, token=token)


@dataclass(frozen=True)
class Forbid(Intervention):
    name = "forbid"
    changes = "tokens"
    steers = True
    token: TokenField
    step: Annotated[int | None, OrNone(One(Index("step")))] = None

    @property
    def named_ids(self) -> tuple[int, ...]:
        return ids_of(self.token)

    def __str__(self) -> str:
        where = "" if self.step is None else f" at {words.number('step', self.step)}"
        return f"{words.quoted(self.token)} is forbidden{where}"


def forbid(token: Token, step: int | None = None) -> Forbid:
    """A token that the output may not hold, at one step or (None) anywhere."""
    return exact(Forbid, token=token, step=step)


@dataclass(frozen=True)
class Prefix(Intervention):
    name = "prefix"
    changes = "tokens"
    steers = True
    token_ids: Annotated[tuple[Token, ...], Several(fields.Token())]

    @property
    def named_ids(self) -> tuple[int, ...]:
        return ids_of(*self.token_ids)

    @property
    def decides(self) -> tuple[str, ...]:
        return tuple(words.number("step", step) for step in range(len(self.token_ids)))

    def __str__(self) -> str:
        return f"the output begins with {words.few(map(words.quoted, self.token_ids))}"

    def check(self, shape: RunShape, changes: Sequence[Intervention]) -> None:
        length = len(self.token_ids)
        if length > shape.target:
            raise InterventionError(
                f"There is no step {length}: the output is limited to {shape.target:,} tokens."
            )


def prefix(token_ids: Token | Iterable[Token]) -> Prefix:
    """The first tokens of the output; after them, the search continues as asked."""
    return exact(Prefix, token_ids=token_ids)


@dataclass(frozen=True)
class EditSource(Intervention):
    name = "edit"
    changes = "tokens"
    position: TypedPosition
    token: TokenField

    @property
    def named_ids(self) -> tuple[int, ...]:
        return ids_of(self.token)

    @property
    def decides(self) -> tuple[str, ...]:
        return (words.number("source token", self.position),)

    def __str__(self) -> str:
        return f"{words.number('source token', self.position)} becomes {words.quoted(self.token)}"


def edit_source(position: int, token: Token) -> EditSource:
    """A different token at one position of the source, as typed."""
    return exact(EditSource, position=position, token=token)


@dataclass(frozen=True)
class DropSource(Intervention):
    name = "drop"
    changes = "tokens"
    position: TypedPosition

    @property
    def decides(self) -> tuple[str, ...]:
        return (words.number("source token", self.position),)

    def __str__(self) -> str:
        return f"{words.number('source token', self.position)} is left out"


def drop_source(position: int) -> DropSource:
    """The source, as typed, without the token at one position."""
    return exact(DropSource, position=position)
