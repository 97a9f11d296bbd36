"""Home page: type a sentence, watch the model translate it, and look into its attention."""

from __future__ import annotations

from ui.shell import frame, sentence
from ui.shell.model_picker import pick_model
from ui.views import home

frame.open_page("Translate")
model = pick_model()
if model is not None:
    sentence.sentence_box()
    sentence.below_box()
    opened = sentence.open_sentence(model)
    if opened is None:
        frame.menu()
        frame.show_notices()
    else:
        frame.show_notices(opened.translation.notes)
        home.show(opened)
