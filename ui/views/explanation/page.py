"""The page "Is attention an explanation?": its sections."""

from __future__ import annotations

from ui.address import session
from ui.server.opened import Opened
from ui.shell import sections
from ui.views.explanation import reasons, scores, sentences, sources, weights

_SECTIONS = {
    "weights": weights.show,
    "why": reasons.show,
    "score": scores.show,
    "sources": sources.show,
    "faithful": sentences.show,
}


def show(opened: Opened) -> None:
    now = session.current()
    sections.draw("explanation", _SECTIONS, now, opened, now)
