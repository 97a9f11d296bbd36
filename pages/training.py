"""Training: what a model is shown, what its loss is, and how fast it learns."""

from __future__ import annotations

from explorer.app.server import examples
from explorer.app.shell.page import open_sentence_page, with_model
from explorer.app.shell.sentence import own_translation
from explorer.app.shell.waiting import for_pytorch

with for_pytorch("training"):
    from explorer.app.views.training import page

opened = open_sentence_page("training", own_translation, changes=page.untouched, target=examples.reference)
if opened is not None:
    with_model(opened, page.show)
