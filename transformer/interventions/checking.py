"""The check of a whole list of interventions against a request, before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from transformer.config import AttentionKind
from transformer.interventions.base import InterventionError, Setting
from transformer.interventions.masks import Mask
from transformer.interventions.tokens import Choose, DropSource, EditSource, Prefix
from transformer.interventions.written import Intervention, few


def as_interventions(values: Iterable[Intervention]) -> tuple[Intervention, ...]:
    """Interventions as a tuple; InterventionError if one is something else, or there are too many."""
    found = (values,) if isinstance(values, Intervention) else tuple(values)
    for each in found:
        if not isinstance(each, Intervention):
            raise InterventionError(
                f"{each!r:.60} is not an intervention; make one with transformer.interventions."
            )
    return few(found)


def check(changes: Sequence[Intervention], setting: Setting) -> None:
    """Raises InterventionError if a change does not fit the request, or if two contradict each other."""
    masks = [each for each in changes if isinstance(each, Mask) and each.kind is AttentionKind.DECODER]
    setting = replace(setting, lifted=lambda query, key: any(mask.allows(query, key) for mask in masks))
    for each in changes:
        each.check(setting)
    _one_each("step", [step for each in changes for step in _steps(each)])
    edits = [each.position for each in changes if isinstance(each, EditSource | DropSource)]
    _one_each("source token", edits)


def _steps(change: Intervention) -> list[int]:
    if isinstance(change, Choose):
        return [change.step]
    return list(range(len(change.token_ids))) if isinstance(change, Prefix) else []


def _one_each(what: str, places: Sequence[int]) -> None:
    for place in places:
        if places.count(place) > 1:
            raise InterventionError(f"Two changes decide {what} {place + 1}; keep one of them.")


T = TypeVar("T")


def edited(
    typed: Sequence[T],  # the tokens of the source as typed, ``</s>`` included
    changes: Iterable[Intervention],  # all changes
    names: Mapping[EditSource, T],  # the tokens of ``EditSource``
) -> tuple[T, ...]:
    """The source as the model reads it; InterventionError if no token is left."""
    read = dict(enumerate(typed))
    for each in changes:
        if isinstance(each, EditSource):
            read[each.position] = names[each]
        if isinstance(each, DropSource):
            read.pop(each.position, None)
    if not read:
        raise InterventionError("No source token is left; keep one.")
    return tuple(read.values())
