"""The page "Is attention an explanation?": its sections."""

from __future__ import annotations

from ui.address import session
from ui.server.opened import Opened
from ui.shell import menu, sections
from ui.views.explanation import reasons, weights

_SECTIONS = (weights, reasons)


def show(opened: Opened) -> None:
    now = session.current()
    sections.draw("explanation", _SECTIONS, now, opened, now)
    for study in ("faithfulness", "weight-effect", "way-back"):
        menu.finding(f"{opened.asked.model}/{study}")
