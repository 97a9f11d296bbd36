"""The visitor's list of changes: those that act, and in their places those switched off."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from explorer.app.address.kinds import POSITION, Kind, Moves, matching, several
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


def parted(items: Iterable[Listed]) -> Moves:
    """A list as values of the state: `changes` and `off`."""
    changes = list(items)
    return {
        "changes": tuple(listed.change for listed in changes if listed.on),
        "off": tuple((i, listed.change) for i, listed in enumerate(changes) if not listed.on),
    }


CHANGES = Kind(read_text, write_text)


def _read_placed(form: re.Match[str]) -> tuple[int, Intervention]:
    (change,) = read_text(form[2])
    return POSITION.read(form[1]), change


def _write_placed(placed: tuple[int, Intervention]) -> str:
    place, change = placed
    return f"{POSITION.write(place)}.{write_text((change,))}"


PLACED = matching(r"([^.]*)\.([^~]+)", _read_placed, _write_placed)
SWITCHED_OFF = several(PLACED, "~")
"""Each after its place in the list, from 1: `2.hide_3~4.choose_1_▁ist`."""
