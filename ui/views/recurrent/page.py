"""The page Recurrent: its sections."""

from __future__ import annotations

from dataclasses import replace

from ui.address import session
from ui.shell import frame, menu, paragraph, sections
from ui.shell.models.model_picker import pick_model
from ui.shell.sentence import sentence_box
from ui.views.recurrent import maps, path, twins

_SECTIONS = (maps, path)
_STUDIES = ("recurrent-length", "recurrent-speed", "hard-attention")


def show() -> None:
    now = frame.open_page("recurrent")
    frame.heading("recurrent", now)
    source = pick_model(now, "recurrent")
    if source is not None:
        now = replace(now, text=twins.text_of(now))
        sentence_box(source, now)
        paragraph.draw(source, now)
    sections.draw("recurrent", _SECTIONS, now, session.current())
    for study in _STUDIES:
        menu.finding(study)
    frame.end("recurrent", now, signs=True)
    frame.show_notices(session.current())
