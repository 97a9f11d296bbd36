"""Search rules that a request adds: tokens chosen or forbidden at steps of the output.

As all rules, they change what a search may choose, never the model's log-probabilities: a chosen token scores
what the model gives it, even if that is little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields

from torch import Tensor

from transformer.decode.rules import SearchRules
from transformer.interventions import Choose, Forbid, Intervention, InterventionError, Prefix, Token

NEVER = -float("inf")


@dataclass(frozen=True, kw_only=True)
class Steering(SearchRules):
    """A model's rules, and what a request adds to them; nothing ends before the last chosen step."""

    chosen: tuple[tuple[int, int], ...] = ()  # steps, from 0, with the id of the only token allowed there
    # steps, or None for every step, with the id of a token that is not allowed there
    barred: tuple[tuple[int | None, int], ...] = ()

    def steered(self, allowed: Tensor, log_probs: Tensor, step: int) -> Tensor:
        only, allowed = dict(self.chosen).get(step), allowed.clone()
        if only is None:
            allowed[:, self._barred_at(step)] = NEVER
        else:
            allowed.fill_(NEVER)[:, only] = log_probs[:, only]
        return allowed

    def _barred_at(self, step: int) -> list[int]:
        barred = [token for at, token in self.barred if at in (None, step)]
        if self.end_id is not None and any(step < at for at, _ in self.chosen):
            barred.append(self.end_id)
        return barred


def steered(
    rules: SearchRules,  # the model's own rules
    changes: Iterable[Intervention],  # all changes of a request
    token_id: Callable[[Token], int],  # finds the id of a token
    end_id: int,  # id of the token that ends an output
) -> SearchRules:
    """The rules with what some interventions add; the rules themselves if none is about the output.

    InterventionError if a token is unknown, or chosen after the end or although it is forbidden.
    """
    chosen, barred = list[tuple[int, int]](), list[tuple[int | None, int]]()
    for each in changes:
        match each:
            case Choose(step, token):
                chosen.append((step, token_id(token)))
            case Prefix(tokens):
                chosen += [(step, token_id(token)) for step, token in enumerate(tokens)]
            case Forbid(token, at):
                barred.append((at, token_id(token)))
    if not chosen and not barred:
        return rules
    _check(chosen, barred, end_id)
    own = {field.name: getattr(rules, field.name) for field in fields(SearchRules)}
    return Steering(**own | {"end_id": end_id}, chosen=tuple(chosen), barred=tuple(barred))


def _check(chosen: Sequence[tuple[int, int]], barred: Sequence[tuple[int | None, int]], end_id: int) -> None:
    latest = max((step for step, _ in chosen), default=0)
    for step, token in chosen:
        if token == end_id and step < latest:
            raise InterventionError(f"Step {step + 1} ends the output, so no token can be chosen after it.")
        if (None, token) in barred or (step, token) in barred:
            raise InterventionError(f"The token chosen at step {step + 1} is also forbidden there.")
