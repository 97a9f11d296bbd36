"""What the environment lets visitors do: how large what they ask for may be, and whether they may
train here.

``TRANSFORMER_HOSTED=on`` switches on all bounds of an instance where anybody may come: texts and
searches are bounded, each run of a page is logged, the Hub is closed unless
``TRANSFORMER_HUB_ALLOWED`` names models (`transformer/hub/settings.py`), and so is training unless
``TRANSFORMER_TRAIN_HERE`` is on.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from datetime import UTC, datetime

from explorer.app.address.kinds import BEAM, LARGEST_BEAM, MOST_DRAWS
from transformer.hub.settings import ALLOWED_VARIABLE, HOSTED_VARIABLE, is_hosted

CHARACTERS = f"{HOSTED_VARIABLE}_CHARACTERS"
HYPOTHESES = f"{HOSTED_VARIABLE}_BEAM"
DRAWS = f"{HOSTED_VARIABLE}_DRAWS"
VISITORS = f"{HOSTED_VARIABLE}_VISITORS"
KNOWN = (CHARACTERS, HYPOTHESES, DRAWS, VISITORS)
SWITCH = "TRANSFORMER_TRAIN_HERE"
MINUTES = f"{SWITCH}_MINUTES"
MEMORY = f"{SWITCH}_MB"
DISK = f"{SWITCH}_DISK_MB"
NICE = f"{SWITCH}_NICE"
HOSTED = (ALLOWED_VARIABLE, "SPACE_ID")
"""Variables that only a hosted instance sets: the operator's list of models, and the name of a
Space."""
ON = ("on", "yes", "true", "1")
OFF = ("off", "no", "false", "0")
MOST = 1_000_000_000
"""The largest number that a variable may give."""
TIMES = 10
"""How much longer a text of several sentences may be than a sentence."""


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
            ValueError: a variable is not a number in its range, or sets nothing: a bound that
                is misspelt
                would leave its default unnoticed.
        """
        if not is_hosted():
            return cls()
        for name in os.environ:
            if name.startswith(f"{HOSTED_VARIABLE}_") and name not in KNOWN:
                known = ", ".join(name.removeprefix(HOSTED_VARIABLE) for name in KNOWN)
                raise ValueError(f"{name} sets nothing; after {HOSTED_VARIABLE} may stand {known}.")
        beam = min(_number(HYPOTHESES, 4), LARGEST_BEAM)
        draws = min(_number(DRAWS, 8), MOST_DRAWS)
        return cls(_number(CHARACTERS, 300), beam, draws, _number(VISITORS, 100))


@dataclass(frozen=True)
class Limits:
    """Bounds of a run of training."""

    minutes: float = 15  # time from its start
    memory_mb: float = 1500  # memory of its process, in MB
    disk_mb: float = 300  # all files of the run and of the models kept from runs, in MB
    nice: int = 15  # how much it gives way to others: 0 not at all, 19 most

    @classmethod
    def from_environment(cls) -> Limits:
        """The limits that the environment sets, or the usual ones.

        ValueError if one is out of its range.
        """
        minutes = _number(MINUTES, cls.minutes)
        memory = _number(MEMORY, cls.memory_mb)
        return cls(
            minutes, memory, _number(DISK, cls.disk_mb), int(_number(NICE, cls.nice, -1, 19))
        )


def _number(name: str, usual: float, above: int = 0, most: int = MOST) -> float:
    """A number that a variable gives, or the usual one; ValueError if it is not in its range."""
    text = os.environ.get(name, "").strip()
    try:
        value = float(text or usual)
    except ValueError:
        value = math.nan
    if not above < value <= most:
        raise ValueError(
            f"{name} is {text!r:.20}; it must be a number above {above}, and at most {most:,}."
        )
    return value


def closed() -> str | None:
    """Why nobody can train here, in one sentence; None if visitors may."""
    value = os.environ.get(SWITCH, "").strip().lower()
    if value in OFF:
        return f"Training is switched off on this server ({SWITCH} is {value})."
    if value and value not in ON:
        return (
            f"Training is switched off on this server: {SWITCH} is {value!r:.20}; it must be on or "
            "off."
        )
    marks = [HOSTED_VARIABLE] if is_hosted() else [name for name in HOSTED if name in os.environ]
    if not value and marks:
        return (
            f"Training is switched off here because this is a hosted instance ({marks[0]} is set); "
            f"{SWITCH}=on switches it on."
        )
    return None


def takes(text: str, times: int = 1) -> bool:
    """Whether a text is not too long for this instance, which is asked before anything reads it."""
    return len(text) <= times * Bounds.from_environment().characters


def check(
    *texts: str | None,
    decode: str = "",  # the way of decoding
    times: int = 1,  # how much longer than a sentence the texts may be
    draws: int = 0,  # samples drawn at once
) -> None:
    """Refuses with a ValueError what is too much for this instance: texts, a beam, or samples."""
    bounds = Bounds.from_environment()
    longest = max((text or "" for text in texts), key=len, default="")
    if not takes(longest, times):
        why = "length"
        message = f"This text has {len(longest):,} characters; "
        message += f"this server takes at most {times * bounds.characters:g}. "
        message += "Your own copy of the app takes more."
    elif decode.startswith(BEAM) and int(decode.removeprefix(BEAM)) > bounds.beam:
        why = "beam"
        message = f"This server searches with at most {bounds.beam:g} hypotheses; choose fewer."
    elif draws > bounds.draws:
        why = "draws"
        message = f"This server draws at most {bounds.draws:g} samples at once; choose fewer."
    else:
        return
    log("refused", why=why)
    raise ValueError(message)


def log(event: str, **values: object) -> None:
    """Writes one line of JSON on a hosted instance.

    Never a text, an address or a name of a visitor.
    """
    if is_hosted():
        record = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event,
            **values,
        }
        print(json.dumps(record), flush=True)
