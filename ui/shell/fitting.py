"""Fits a state to the model and the translation: chooses the nearest valid values, and names each change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from figures.base import labels
from ui.address.state import State
from ui.linked_view import Head
from ui.server.imported import is_imported


def fit_model(
    asked: str | None,  # the name in the state, or None
    names: Iterable[str],  # the models there are, the default first
) -> tuple[str, list[str]]:
    """The model to open, and a sentence if it is not the one asked for; a path is not a name."""
    known = list(names)
    if asked in known:
        return str(asked), []
    notes = []
    if asked is not None:
        notes = [f"The model that the address names is not here, so {known[0]} is shown."]
    if is_imported(asked):
        notes = [f"The file that the address names is not open, so {known[0]} is shown. Open the file again."]
    return known[0], notes


def fit_head(
    kind: str,  # encoder, decoder or cross
    asked: Head | None,  # layer and head in the state (from 0), or None
    size: Head,  # number of layers and of heads
    default: Head,  # the head that opens first
) -> tuple[Head, list[str]]:
    """The head to open, and a sentence if the model lacks the head asked for."""
    if asked is None:
        return default, []
    nearest = min(asked[0], size[0] - 1), min(asked[1], size[1] - 1)
    if nearest == asked:
        return nearest, []
    layers = f"{size[0]} layer{'s' * (size[0] > 1)} of {size[1]} head{'s' * (size[1] > 1)}"
    return nearest, [f"This model has {layers}; {kind} shows {labels.head_phrase(*nearest)}."]


def fit_heads(
    state: State, sizes: Mapping[str, Head], defaults: Mapping[str, Head]
) -> tuple[dict[str, Head], list[str]]:
    """`fit_head` for every kind."""
    chosen, notes = {}, []
    for kind, size in sizes.items():
        chosen[kind], more = fit_head(kind, getattr(state, kind), size, defaults[kind])
        notes += more
    return chosen, notes


def fit_position(what: str, asked: int | None, length: int) -> tuple[int | None, list[str]]:
    """A position inside the sentence (from 0), and a notice if it was outside; None stays None."""
    if asked is None or asked < length:
        return asked, []
    return length - 1, [f"This sentence has {length} {what}s; {what} {length} is shown."]
