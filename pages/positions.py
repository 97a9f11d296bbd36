"""Positions: what each positional encoding is, what it does to a sentence, and how much it
helps."""

from functools import partial

from explorer.app.address import session
from explorer.app.shell import frame, menu, sections
from explorer.app.shell.changed import of_tokens
from explorer.app.shell.model_picker import pick_model
from explorer.app.shell.page import open_sentence_page
from explorer.app.shell.waiting import for_pytorch

with for_pytorch("positions"):
    from explorer.app.sections.positions import alone, sentence, together

session.adopt()
if session.current().view == "sentence":
    opened = open_sentence_page(
        "positions", partial(sections.switch, "positions"), changes=of_tokens
    )
    if opened is not None:
        sentence.show(opened)
else:
    now = frame.open_page("positions")
    frame.heading("positions", now)
    pick_model(now, "positions")
    sections.switch("positions", now)
    (together if now.view == "together" else alone).show()
    menu.finding("positions")
    frame.end("positions", now)
