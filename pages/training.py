"""Training: what a model is shown, what its loss is, and how fast it learns."""

from __future__ import annotations

from ui.server import examples
from ui.shell.page import open_sentence_page, with_model
from ui.shell.sentence import own_translation
from ui.shell.waiting import for_pytorch

with for_pytorch("training"):
    from ui.views.training import page

opened = open_sentence_page("training", own_translation, changes=page.untouched, target=examples.reference)
if opened is not None:
    with_model(opened, page.show)
