"""Whether visitors may train here, and how much a run may take, as the environment says."""

from __future__ import annotations

import os
from dataclasses import dataclass

from explorer.app.server.hosting import bounds, hosted
from transformer.hub.settings import ALLOWED_VARIABLE, HOSTED_VARIABLE, is_hosted

SWITCH = "TRANSFORMER_TRAIN_HERE"
MINUTES, MEMORY, DISK = f"{SWITCH}_MINUTES", f"{SWITCH}_MB", f"{SWITCH}_DISK_MB"
NICE = f"{SWITCH}_NICE"
HOSTED = (ALLOWED_VARIABLE, "SPACE_ID")
"""Variables that only a hosted instance sets: the operator's list of models, and the name of a Space."""


@dataclass(frozen=True)
class Limits:
    """Bounds of a run."""

    minutes: float = 15  # time from its start, pauses included
    memory_mb: float = 1500  # memory of its process, in MB
    disk_mb: float = 300  # all files of the run and of the models kept from runs, in MB
    nice: int = 15  # how much it gives way to others: 0 not at all, 19 most

    @classmethod
    def from_environment(cls) -> Limits:
        """The limits that the environment sets, or the usual ones.

        Raises:
            ValueError: A variable is not a number in its range.
        """
        usual = cls()
        return cls(
            bounds.number(MINUTES, usual.minutes),
            bounds.number(MEMORY, usual.memory_mb),
            bounds.number(DISK, usual.disk_mb),
            _nice(usual.nice),
        )


def closed() -> str | None:
    """Why nobody can train here, in one sentence; None if visitors may."""
    value = os.environ.get(SWITCH, "").strip().lower()
    if value in hosted.OFF:
        return f"Training is switched off on this server ({SWITCH} is {value})."
    if value and value not in hosted.ON:
        return f"Training is switched off on this server: {SWITCH} is {value!r:.20}; it must be on or off."
    marks = [HOSTED_VARIABLE] if is_hosted() else [name for name in HOSTED if name in os.environ]
    if not value and marks:
        return (
            f"Training is switched off here because this is a hosted instance ({marks[0]} is set); "
            f"{SWITCH}=on switches it on."
        )
    return None


def _nice(usual: int) -> int:
    text = os.environ.get(NICE, "").strip()
    if not text:
        return usual
    if not (text.isascii() and text.isdigit() and int(text[:4]) <= 19):
        raise ValueError(f"{NICE} is {text!r:.20}; it must be a whole number from 0 to 19.")
    return int(text)
