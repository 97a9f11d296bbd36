"""Fits a state to the model and the translation: chooses the nearest valid values, and names each change."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import plain
from explorer.app.server import runs
from explorer.app.server.source import FILE, Source
from explorer.figures.base import labels
from transformer.config import Head

T = TypeVar("T")


def fit_model(
    wanted: str | None,  # the name in the state, or None
    names: Iterable[str],  # the models there are, the default first
) -> tuple[str, list[str]]:
    """The model to open, and a sentence if it is not the one asked for; a path is not a name."""
    known = list(names)
    if wanted in known:
        return str(wanted), []
    notes = []
    if wanted is not None:
        notes = [f"The model that the address names is not here, so {known[0]} is shown."]
    if wanted is not None and wanted.startswith(FILE):
        notes = [f"The file that the address names is not open, so {known[0]} is shown. Open the file again."]
    return known[0], notes


def fit_head(
    kind: str,  # encoder, decoder or cross
    wanted: Head | None,  # layer and head in the state (from 0), or None
    size: Head,  # number of layers and of heads
    default: Head,  # the head that opens first
) -> tuple[Head, list[str]]:
    """The head to open, and a sentence if the model lacks the head asked for."""
    if wanted is None:
        return default, []
    nearest = min(wanted[0], size[0] - 1), min(wanted[1], size[1] - 1)
    if nearest == wanted:
        return nearest, []
    layers = f"{size[0]} layer{'s' * (size[0] > 1)} of {size[1]} head{'s' * (size[1] > 1)}"
    return nearest, [f"This model has {layers}; {kind} shows {labels.head_phrase(*nearest)}."]


def fit_heads(
    now: State,
    source: Source,  # the model, or the open file
    first: Mapping[str, Head] = MappingProxyType({}),  # the heads that open first instead of the model's own
) -> tuple[dict[str, Head], list[str]]:
    """`fit_head` for every kind of a model."""
    chosen, notes = {}, []
    for kind, size in source.sizes.items():
        default = first.get(kind) or runs.default_head(source, kind)
        chosen[kind], more = fit_head(kind, getattr(now, kind), size, default)
        notes += more
    return chosen, notes


def fit_position(what: str, wanted: int | None, length: int) -> tuple[int | None, list[str]]:
    """A position inside the sentence (from 0), and a notice if it was outside; None stays None."""
    if wanted is None or wanted < length:
        return wanted, []
    return length - 1, [f"This sentence has {length} {what}{'s' * (length > 1)}; {what} {length} is shown."]


def fitted_here(what: str, wanted: int | None, length: int) -> int | None:
    """`fit_position` in a part of a page, which says there itself that something else is shown."""
    found, notes = fit_position(what, wanted, length)
    for note in notes:
        st.caption(plain(note))
    return found


def noticed(fitted: tuple[T, list[str]]) -> T:
    """A fitted value; notices say what changed."""
    for note in fitted[1]:
        session.notice(note)
    return fitted[0]
