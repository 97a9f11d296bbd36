"""Training: what a model is shown, what its loss is, how it went, and a small model that learns here."""

from __future__ import annotations

from explorer.app.address import session
from explorer.app.server import examples
from explorer.app.shell.page import open_sentence_page, with_model
from explorer.app.shell.sentence import own_translation
from explorer.app.shell.waiting import for_pytorch

with for_pytorch("training"):
    from explorer.app.views.training import page, workshop

session.adopt()
if session.current().view == "here":
    workshop.show()
else:
    opened = open_sentence_page(
        "training", own_translation, changes=page.untouched, target=examples.reference
    )
    if opened is not None:
        with_model(opened, page.show)
