"""The page Positions: one encoding by itself, two beside one another, all of them on a sentence."""

from functools import cache, partial
from typing import Any

from explorer.app.address import State, session
from explorer.app.address.encodings import ENCODINGS, twin_title
from explorer.app.controls import inform, panel, pickers
from explorer.app.server import models
from transformer import Translator
from transformer.config import Side
from transformer.storage.files import read_json

TITLES = {name: twin_title(name) for name in ENCODINGS}
STACKS = {"encoder": "encoder", "decoder": "masked decoder"}
USUAL = "sinusoidal"
draw = partial(panel, sentence=False)
_read = cache(read_json)  # of a file that is shipped, and never changes


def twins_measured() -> dict[str, Any]:
    """What was measured of the bundled twins; empty if it never was."""
    path = models.BUNDLED / models.TWINS / "results.json"
    return _read(path) if path.is_file() else {}


def fitted(what: str, wanted: int, most: int) -> int:
    """The place (from 0) that is shown.

    A notice says so if there is none as far as the one asked for.
    """
    if wanted > most:
        session.notice(f"There is no {what} {wanted + 1:,} here, so {most + 1:,} is shown.")
    return min(wanted, most)


def stack_switch(now: State, section: str) -> Side:
    stack: Side = "decoder" if now.kind == "decoder" else "encoder"

    def take(side: str) -> None:
        session.change(kind=None if side == "encoder" else side)

    pickers.switch(f"positions.{section}", "Stack", STACKS, stack, take)
    return stack


def twin(name: str) -> Translator | None:
    """The model that was trained with an encoding; if it is not here, the page says so."""
    full = f"{models.TWINS}/{name}"
    if (model := models.twins().get(full)) is not None:
        return model.load()
    inform(f"Its twin would show what this encoding learns, but there is no model {full} here.")
    return None
