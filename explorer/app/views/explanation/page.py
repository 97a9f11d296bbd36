"""The page "Is attention an explanation?": its sections."""

from __future__ import annotations

from explorer.app.address import session
from explorer.app.server.opened import Opened
from explorer.app.shell import menu, sections
from explorer.app.views.explanation import reasons, weights

_SECTIONS = (weights, reasons)


def show(opened: Opened) -> None:
    now = session.current()
    sections.draw("explanation", _SECTIONS, now, opened, now)
    for study in ("faithfulness", "weight-effect", "way-back"):
        menu.finding(f"{opened.asked.model}/{study}")
