"""The page Recurrent: its sections."""

from __future__ import annotations

from ui.address import session
from ui.shell import frame, sections
from ui.shell.models.model_picker import pick_model
from ui.shell.sentence import sentence_box
from ui.views.recurrent import long, maps, path, speed

_SECTIONS = {
    "maps": maps.show,
    "long": long.show,
    "path": path.show,
    "speed": speed.show,
}
_READING = {"maps", "path"}
"""Sections that read the visitor's sentence."""


def show() -> None:
    now = frame.open_page("recurrent")
    frame.heading("recurrent", now)
    pick_model(now, "recurrent")
    reads = (now.view or "maps") in _READING
    if reads:
        sentence_box(now)
    sections.draw("recurrent", _SECTIONS, now, session.current())
    frame.end("recurrent", now, signs=reads)
    frame.show_notices(session.current())
