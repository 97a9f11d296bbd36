"""What one visitor of a hosted instance may ask for, as the environment sets it."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from explorer.app.address.kinds import LARGEST_BEAM, MOST_DRAWS
from transformer.hub.settings import HOSTED_VARIABLE, is_hosted

CHARACTERS, HYPOTHESES = f"{HOSTED_VARIABLE}_CHARACTERS", f"{HOSTED_VARIABLE}_BEAM"
DRAWS, VISITORS = f"{HOSTED_VARIABLE}_DRAWS", f"{HOSTED_VARIABLE}_VISITORS"
KNOWN = (CHARACTERS, HYPOTHESES, DRAWS, VISITORS)
MOST = 1_000_000_000
"""The largest number that a variable may give."""


@dataclass(frozen=True)
class Bounds:
    """What one visitor may ask for, and how many there may be."""

    characters: float = math.inf  # of a text
    beam: float = LARGEST_BEAM  # hypotheses of a search
    draws: float = MOST_DRAWS  # samples drawn at once
    visitors: float = math.inf  # with an open page, of the process

    @classmethod
    def from_environment(cls) -> Bounds:
        """The bounds of a hosted instance as the environment sets them; none if it is not hosted.

        Raises:
            ValueError: a variable is not a number in its range, or sets nothing: a bound that is misspelt
                would leave its default unnoticed.
        """
        if not is_hosted():
            return cls()
        for name in os.environ:
            if name.startswith(f"{HOSTED_VARIABLE}_") and name not in KNOWN:
                known = ", ".join(each.removeprefix(HOSTED_VARIABLE) for each in KNOWN)
                raise ValueError(f"{name} sets nothing; after {HOSTED_VARIABLE} may stand {known}.")
        return cls(
            number(CHARACTERS, 300),
            min(number(HYPOTHESES, 4), LARGEST_BEAM),
            min(number(DRAWS, 8), MOST_DRAWS),
            number(VISITORS, 100),
        )


def number(name: str, usual: float) -> float:
    """A number above 0 that a variable gives, or the usual one.

    Raises:
        ValueError: it is not a number in this range.
    """
    text = os.environ.get(name, "").strip()
    try:
        value = float(text) if text else usual
    except ValueError:
        value = math.nan
    if not 0 < value <= MOST:
        raise ValueError(f"{name} is {text!r:.20}; it must be a number above 0, and at most {MOST:,}.")
    return value
