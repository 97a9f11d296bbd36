"""Interventions on tokens: which ones come out, and which ones the encoder reads.

They never change the model's distribution: log-probabilities and alternatives stay its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from transformer.interventions.base import (
    Intervention,
    InterventionError,
    Setting,
    Token,
    token_of,
    whole,
)


@dataclass(frozen=True)
class Choose(Intervention):
    """One token at one step of the output, in every live hypothesis; no output ends before that step."""

    name: ClassVar[str] = "choose"
    step: int
    token: Token

    def check(self, setting: Setting) -> None:
        _check_step(self.step, setting)

    def __str__(self) -> str:
        return f"step {self.step + 1} writes {shown(self.token)}"


@dataclass(frozen=True)
class Forbid(Intervention):
    """A token that the output may not hold, at one step or anywhere."""

    name: ClassVar[str] = "forbid"
    token: Token
    step: int | None = None

    def check(self, setting: Setting) -> None:
        if self.step is not None:
            _check_step(self.step, setting)

    def __str__(self) -> str:
        where = "" if self.step is None else f" at step {self.step + 1}"
        return f"{shown(self.token)} is forbidden{where}"


@dataclass(frozen=True)
class Prefix(Intervention):
    """The first tokens of the output; after them, the search continues as asked."""

    name: ClassVar[str] = "prefix"
    token_ids: tuple[Token, ...]

    def check(self, setting: Setting) -> None:
        _check_step(len(self.token_ids) - 1, setting)

    def __str__(self) -> str:
        first = " ".join(map(shown, self.token_ids[:4])) + " …" * (len(self.token_ids) > 4)
        return f"the output begins with {len(self.token_ids)} given tokens: {first}"


@dataclass(frozen=True)
class EditSource(Intervention):
    """A different token at one position of the source, as typed."""

    name: ClassVar[str] = "edit"
    position: int
    token: Token

    def check(self, setting: Setting) -> None:
        _check_position(self.position, setting)

    def __str__(self) -> str:
        return f"source token {self.position + 1} becomes {shown(self.token)}"


@dataclass(frozen=True)
class DropSource(Intervention):
    """The source, as typed, without the token at one position."""

    name: ClassVar[str] = "drop"
    position: int

    def check(self, setting: Setting) -> None:
        _check_position(self.position, setting)

    def __str__(self) -> str:
        return f"source token {self.position + 1} is left out"


def choose(
    step: int,  # the step, from 0
    token: Token,  # a piece such as "▁ist", or its id
) -> Choose:
    """Writes a token at a step of the output.

    In a beam this holds for every live hypothesis. No output ends before that step. Scores keep the model's
    own log-probabilities.
    """
    return Choose(whole(step, "The step"), token_of(token))


def forbid(token: Token, step: int | None = None) -> Forbid:
    """Forbids a token, at one step (from 0) or everywhere in the output."""
    return Forbid(token_of(token), None if step is None else whole(step, "The step"))


def prefix(token_ids: Iterable[Token]) -> Prefix:
    """Keeps these first tokens of the output, given as ids or pieces; the search then continues as asked."""
    tokens = () if isinstance(token_ids, str | int) else tuple(token_of(token) for token in token_ids)
    if not 1 <= len(tokens) <= 4096:
        raise InterventionError("A prefix is a list of 1 to 4,096 tokens.")
    return Prefix(tokens)


def edit_source(position: int, token: Token) -> EditSource:
    """Reads another token at a position (from 0) of the source as typed."""
    return EditSource(whole(position, "The position"), token_of(token))


def drop_source(position: int) -> DropSource:
    """Leaves out the token at a position (from 0) of the source as typed."""
    return DropSource(whole(position, "The position"))


def shown(token: Token) -> str:
    """A token as people read it."""
    return f"“{token}”" if isinstance(token, str) else f"token {token}"


def _check_step(step: int, setting: Setting) -> None:
    if step >= setting.target:
        what = "has" if setting.forced else "is limited to"
        raise InterventionError(
            f"There is no step {step + 1}: the output {what} {setting.target:,} tokens, counted from 1."
        )


def _check_position(position: int, setting: Setting) -> None:
    if position >= setting.typed:
        raise InterventionError(
            f"There is no source token {position + 1}: the text has {setting.typed:,}, counted from 1."
        )
