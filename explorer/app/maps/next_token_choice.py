"""Continuing with another token: the visitor clicks a candidate, and the model decodes again from there."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from explorer.app.address import session
from explorer.app.server.view import View
from explorer.figures.base.bars import shown_candidates
from transformer.interventions import Choose, Intervention, Prefix, choose, prefix
from transformer.run import Translation


def changes(
    translation: Translation,  # the run so far
    step: int,  # the step, from 0
    token_id: int,  # one of the step's candidates
) -> tuple[Intervention, ...]:
    """The changes with which a run keeps its tokens up to a step, writes a token there, and then continues.

    Greedy search needs only the choice of the token, because it writes the tokens before the step again. Any
    other way of decoding is given those tokens. Choices for later steps are dropped. A token that greedy
    search would write anyway needs no choice.
    """
    kept = tuple(each for each in translation.interventions if not _chooses(each, step))
    if translation.method != "greedy":
        others = tuple(each for each in kept if not isinstance(each, Choose | Prefix))
        return (*others, prefix([*translation.target_ids[:step], token_id]))
    now = translation.steps[step]
    first = now.alternatives[0]
    if token_id == first.token_id and not first.excluded and _free(kept):
        return kept
    return (*kept, choose(step, _piece(translation, step, token_id)))


def _chooses(change: Intervention, step: int) -> bool:
    """Whether a change chooses the token of this step or of a later one."""
    if isinstance(change, Prefix):
        return len(change.token_ids) > step
    return isinstance(change, Choose) and change.step >= step


def _free(changes: Sequence[Intervention]) -> bool:
    """Whether nothing but choices is changed, so that greedy search takes the most probable token."""
    return all(isinstance(each, Choose) for each in changes)


def _piece(translation: Translation, step: int, token_id: int) -> int | str:
    """The token as its piece, which people can read in an address; by its id if several tokens look alike."""
    found = [each for each in translation.steps[step].alternatives if each.token_id == token_id]
    piece = found[0].token if found else ""
    alike = [each for each in translation.steps[step].alternatives if each.token == piece]
    return piece if len(alike) == 1 else token_id


def take(opened: View, step: int, token_id: int) -> dict[str, Any]:
    """The state's values for continuing with a candidate; it and the token it replaces count as tried."""
    now = opened.translation.steps[step].token_id
    if token_id == now:
        return {}
    session.tried().update((_place(opened, step), each) for each in (token_id, now))
    return {
        **session.RUN,
        "changes": changes(opened.translation, step, token_id),
        "target": None,
        "step": step,
    }


def offered(opened: View) -> tuple[list[list[int]], list[list[int]]]:
    """The ids of the candidates of each step, and of those that the visitor has tried."""
    steps, tried = opened.translation.steps, session.tried()
    ids = [[each.token_id for each in shown_candidates(step)] for step in steps]
    places = [_place(opened, i) if tried else () for i in range(len(steps))]
    return ids, [[each for each in row if (places[i], each) in tried] for i, row in enumerate(ids)]


def _place(opened: View, step: int) -> tuple[Hashable, ...]:
    """A sentence with the tokens before a step."""
    return opened.request.model, opened.request.text, opened.translation.target_ids[:step]
