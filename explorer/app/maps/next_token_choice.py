"""Continuing with another token: the visitor clicks a candidate, and the model decodes again from there."""

from collections.abc import Hashable
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

    Greedy search needs only the choice of the token, because it writes the tokens before the step again, and
    none of a token that it would write anyway. Any other way of decoding is given the tokens before the step.
    Choices for later steps are dropped.
    """
    kept = tuple(
        each
        for each in translation.interventions
        if not (isinstance(each, Prefix) and len(each.token_ids) > step)
        and not (isinstance(each, Choose) and each.step >= step)
    )
    if translation.method != "greedy":
        others = tuple(each for each in kept if not isinstance(each, Choose | Prefix))
        return (*others, prefix([*translation.target_ids[:step], token_id]))
    offered = translation.steps[step].alternatives
    free = all(isinstance(each, Choose) for each in kept)  # greedy search takes the most probable token
    if free and token_id == offered[0].token_id and not offered[0].excluded:
        return kept
    # as its piece, which people can read in an address; by its id if several tokens look alike
    piece = next((each.token for each in offered if each.token_id == token_id), "")
    alike = [each for each in offered if each.token == piece]
    return (*kept, choose(step, piece if len(alike) == 1 else token_id))


def take(opened: View, step: int, token_id: int) -> dict[str, Any]:
    """The state's values for continuing with a candidate; it and the token it replaces count as tried."""
    now = opened.translation.steps[step].token_id
    if token_id == now:
        return {}
    session.tried().update((_place(opened, step), each) for each in (token_id, now))
    more = {"changes": changes(opened.translation, step, token_id), "target": None, "step": step}
    return {**session.RUN, **more}


def offered(opened: View) -> tuple[list[list[int]], list[list[int]]]:
    """The ids of the candidates of each step, and of those that the visitor has tried."""
    steps, tried = opened.translation.steps, session.tried()
    ids = [[each.token_id for each in shown_candidates(step)] for step in steps]
    places = [_place(opened, i) if tried else () for i in range(len(steps))]
    return ids, [[each for each in row if (places[i], each) in tried] for i, row in enumerate(ids)]


def _place(opened: View, step: int) -> tuple[Hashable, ...]:
    """A sentence with the tokens before a step."""
    return opened.request.model, opened.request.text, opened.translation.target_ids[:step]
