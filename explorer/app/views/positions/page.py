"""The page of positional encodings, with its three parts."""

from __future__ import annotations

from explorer.app.address import session
from explorer.app.shell import frame, menu, sections
from explorer.app.shell.changed import of_tokens
from explorer.app.shell.models.model_picker import pick_model
from explorer.app.shell.page import open_sentence_page
from explorer.app.views.positions import sentence, tables, together


def show() -> None:
    session.adopt()
    if session.current().view == "sentence":
        opened = open_sentence_page(
            "positions", lambda now: sections.switch("positions", now), changes=of_tokens
        )
        if opened is not None:
            sentence.show(opened)
        return
    now = frame.open_page("positions")
    frame.heading("positions", now)
    pick_model(now, "positions")
    sections.switch("positions", now)
    if now.view == "together":
        together.show()
    else:
        tables.show()
    menu.finding("positions")
    frame.end("positions", now)
