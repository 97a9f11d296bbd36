"""The visitor's list of changes: those that act, and in their places those that are switched
off."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from explorer.app.address.kinds import POSITION, Kind, matching, several
from transformer.interventions import Intervention, read_text, write_text

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
    every = [Listed(change, True) for change in changes]
    for place, switched_off in sorted(off, key=lambda item: item[0]):
        every.insert(place, Listed(switched_off, False))
    return tuple(every)


def parted(items: Iterable[Listed]) -> dict[str, Any]:
    """A list as values of the state: `changes` and `off`."""
    items = list(items)
    return {
        "changes": tuple(item_listed.change for item_listed in items if item_listed.on),
        "off": tuple((i, each.change) for i, each in enumerate(items) if not each.on),
    }


CHANGES = Kind(read_text, write_text)
PLACED = matching(
    r"([^.]*)\.([^~]+)",
    lambda found: (POSITION.read(found[1]), *read_text(found[2])),
    lambda placed: f"{POSITION.write(placed[0])}.{write_text(placed[1:])}",
)
SWITCHED_OFF = several(PLACED, "~")
"""Each after its place in the list, from 1: `2.hide_3~4.choose_1_▁ist`."""
