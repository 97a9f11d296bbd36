"""Interventions on tokens: which ones come out, and which ones the encoder reads.

They never change the model's distribution: log-probabilities and alternatives stay its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from transformer.interventions.base import InterventionError, Setting, Token
from transformer.interventions.fields import Plain, Step, TokenField, Typed, shown
from transformer.interventions.written import Field, Intervention

__all__ = ["Choose", "DropSource", "EditSource", "Forbid", "Prefix"]
__all__ += ["choose", "drop_source", "edit_source", "forbid", "prefix"]


class _Tokens(Field[Any, Any]):
    def validate(self, value: Any) -> tuple[Token, ...]:
        tokens = () if isinstance(value, str | int) else tuple(map(TokenField().validate, value))
        if not 1 <= len(tokens) <= 4096:
            raise InterventionError("A prefix is a list of 1 to 4,096 tokens.")
        return tokens

    def check(self, value: tuple[Token, ...], of: Any, setting: Setting) -> None:
        setting.check_step(len(value) - 1)

    def to_text(self, value: tuple[Token, ...], parts: list[str]) -> None:
        parts += map(TokenField().write, value)

    def from_text(self, parts: list[str]) -> list[Token]:
        tokens = list(map(TokenField().read, parts))
        parts.clear()
        return tokens


class Choose(Intervention):
    """One token at one step of the output, in every live hypothesis; no output ends before that step.

    Scores keep the model's own log-probabilities.
    """

    name: ClassVar[str] = "choose"
    step: Plain[int] = Step("The step")  # the step, from 0
    token: Plain[Token] = TokenField()  # a piece such as "▁ist", or its id

    def __str__(self) -> str:
        return f"step {self.step + 1} writes {shown(self.token)}"


class Forbid(Intervention):
    """A token that the output may not hold, at one step or anywhere."""

    name: ClassVar[str] = "forbid"
    token: Plain[Token] = TokenField()
    step: Plain[int | None] = Step("The step", None)  # the step, from 0; None for every step

    def __str__(self) -> str:
        where = "" if self.step is None else f" at step {self.step + 1}"
        return f"{shown(self.token)} is forbidden{where}"


class Prefix(Intervention):
    """The first tokens of the output; after them, the search continues as asked."""

    name: ClassVar[str] = "prefix"
    token_ids: Field[tuple[Token, ...], Iterable[Token]] = _Tokens()  # ids or pieces

    def __str__(self) -> str:
        first = " ".join(map(shown, self.token_ids[:4])) + (" …" if len(self.token_ids) > 4 else "")
        return f"the output begins with {len(self.token_ids)} given tokens: {first}"


class EditSource(Intervention):
    """A different token at one position of the source, as typed."""

    name: ClassVar[str] = "edit"
    position: Plain[int] = Typed("The position")  # from 0
    token: Plain[Token] = TokenField()

    def __str__(self) -> str:
        return f"source token {self.position + 1} becomes {shown(self.token)}"


class DropSource(Intervention):
    """The source, as typed, without the token at one position."""

    name: ClassVar[str] = "drop"
    position: Plain[int] = Typed("The position")  # from 0

    def __str__(self) -> str:
        return f"source token {self.position + 1} is left out"


choose, forbid, prefix, edit_source, drop_source = Choose, Forbid, Prefix, EditSource, DropSource
