"""Choices for the sections of the page: an encoding, a stack, and sentences on both."""

from __future__ import annotations

from explorer.app.address import State, session
from explorer.app.address.encodings import ENCODINGS
from explorer.app.controls import pickers
from explorer.app.server import measured
from explorer.app.server.catalogue import twin_title as title
from explorer.figures.base import labels
from transformer.config import Side

USUAL = "sinusoidal"
STACKS = {"encoder": "encoder", "decoder": "masked decoder"}


NARROW = 240
"""Most columns of a map that a phone has room for."""


def in_cross_attention(name: str) -> str:
    """Meaning of an encoding for cross-attention, which applies none."""
    if name == "none":
        return "Cross-attention applies no positions either."
    if ENCODINGS[name].acts == "embeddings":
        return (
            "Nothing is applied *inside* cross-attention. But what was added to the embeddings travels on in "
            "the stream, so positions reach cross-attention through the encoder's output."
        )
    return (
        "Nothing is applied *inside* cross-attention: queries and keys there belong to two sentences. "
        "Positions reach it only as far as self-attention has mixed them into the encoder's output."
    )


def probed(name: str) -> str:
    """Accuracy of a linear probe for positions in the encoder's output of a twin; empty if not measured."""
    found = (measured.shipped(measured.POSITIONS) or {}).get("probe", {}).get("models", {})
    if name not in found:
        return ""
    share = f"**R² = {found[name]['value']:.2f}**"
    if name == "none":
        return (
            f"A linear probe still reads a token's position from the encoder's output with {share}, because "
            "some tokens give it away: a full stop, for example, ends the sentence."
        )
    bare = f" ({found['none']['value']:.2f} without an encoding)" if "none" in found else ""
    return f"In this twin, a linear probe reads a token's position there with {share}{bare}."


def fitted(what: str, asked: int, most: int) -> int:
    """Fits a position, dimension or the like (from 0) to what is there; a notice says so if it changed."""
    if asked > most:
        session.notice(f"There is no {what} {asked + 1:,} here, so {most + 1:,} is shown.")
    return min(asked, most)


def fitted_head(asked: tuple[int, int], shape: tuple[int, int]) -> tuple[int, int]:
    """Fits a layer and head (from 0) to the model; a notice says so if they changed."""
    found = min(asked[0], shape[0] - 1), min(asked[1], shape[1] - 1)
    if found != asked:
        session.notice(f"There is no {labels.head_phrase(*asked)}, so {labels.head_phrase(*found)} is shown.")
    return found


def pick(now: str) -> None:
    """Draws the switch between encodings."""

    def take(name: str) -> None:
        session.change(encoding=None if name == USUAL else name, d_model=None)

    names = {name: title(name) for name in ENCODINGS}
    pickers.switch("encoding", "Encoding", names, now, take)


def too_narrow(columns: int) -> str:
    """Ends the caption of a map with many columns: each column needs a px."""
    return f"; a map less than {columns} px wide does not show every column" if columns > NARROW else ""


def stack_of(now: State) -> Side:
    """The stack whose self-attention the page shows; the encoder if the state names neither stack."""
    return "decoder" if now.kind == "decoder" else "encoder"


def stack_switch(
    stack: Side,  # the chosen stack
    section: str,  # the section in which the switch stands; it names the widget
) -> None:
    """Draws the switch between the stacks."""
    pickers.switch(
        f"positions.{section}",
        "Stack",
        STACKS,
        stack,
        lambda side: session.change(kind=None if side == "encoder" else side),
    )
