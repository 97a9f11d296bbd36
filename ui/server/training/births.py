"""Training runs that kept snapshots, and what their snapshots make of a sentence: once, and then kept."""

from __future__ import annotations

from collections.abc import Callable

from lab.birth.sentence import Frame, frames
from transformer.hub.files import size
from transformer.training.runs.snapshots import snapshot_steps
from ui.server import catalogue, memory, models
from ui.server.hosting import hosted
from ui.server.stores import NoRoomError, declare, held, kept

_BIRTHS = declare("births", 16, lambda found: sum(held(each.forced) for each in found))
Tell = Callable[[int, int], object]
USUAL = "birth"
"""The run that ships with the app."""


def runs() -> dict[str, tuple[int, ...]]:
    """The steps of the snapshots of every model in the list of models that has any; the usual one first."""
    found = {name: snapshot_steps(path) for name, path in catalogue.available().items()}
    return {name: found[name] for name in sorted(found, key=lambda name: name != USUAL) if found[name]}


def through(
    name: str,  # the run
    text: str,  # the sentence
    target: str,  # its translation
    tell: Tell,  # hears the step of each snapshot, and how many have read the sentence
) -> tuple[Frame, ...]:
    """A sentence and its translation through every snapshot of a run.

    Raises:
        ValueError: a text cannot be read, a snapshot is damaged, or the model does not fit into memory.
    """
    hosted.check_texts(text)
    model = models.handle(name)

    def make() -> tuple[Frame, ...]:
        if memory.available() < model.needs:
            raise NoRoomError(f"A snapshot of {name} needs {size(model.needs)} of memory, but less is free.")
        found = []
        for frame in frames(model.path, text, target, name):
            found.append(frame)
            tell(frame.step, len(found))
        return tuple(found)

    found: tuple[Frame, ...] = kept(_BIRTHS).get((name, model.changed, text, target), make)
    return found
