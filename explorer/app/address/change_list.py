"""The visitor's list of changes: those that act, and in their places those that are switched off."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from explorer.app.address.kinds import POSITION, Kind
from transformer.interventions import Intervention, InterventionError, read_text, write_text

Off = tuple[tuple[int, Intervention], ...]
"""Changes that are switched off, each with its place (from 0) in the list of all changes."""


class Listed(NamedTuple):
    """A change in the list."""

    change: Intervention  # the change
    on: bool  # whether it acts


def listed(
    changes: Iterable[Intervention],  # the changes that act, in their order
    off: Off,  # those that are switched off; one whose place is beyond the end comes last
) -> tuple[Listed, ...]:
    """The whole list."""
    found = [Listed(each, True) for each in changes]
    for place, each in sorted(off, key=lambda item: item[0]):
        found.insert(place, Listed(each, False))
    return tuple(found)


def parted(items: Iterable[Listed]) -> dict[str, Any]:
    """A list as values of the state: `changes` and `off`."""
    items = list(items)
    return {
        "changes": tuple(each.change for each in items if each.on),
        "off": tuple((i, each.change) for i, each in enumerate(items) if not each.on),
    }


def _write_off(off: Off) -> str:
    return "~".join(f"{place + 1}.{write_text([change])}" for place, change in off)


def _read_off(text: str) -> Off:
    found = []
    for each in text.split("~"):
        place, _, written = each.partition(".")
        changes = read_text(written)
        if len(changes) != 1:
            raise InterventionError("A change that is switched off follows its place in the list and a dot.")
        found.append((POSITION.read(place), changes[0]))
    return tuple(found)


CHANGES = Kind(read_text, write_text)
SWITCHED_OFF = Kind(_read_off, _write_off)
"""Each after its place in the list, from 1: `2.hide_3~4.choose_1_▁ist`."""
