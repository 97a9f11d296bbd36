"""Home page: type a sentence, watch it being translated, open the attention on the way."""

from __future__ import annotations

from ui import frame, home, widgets
from ui.model_picker import pick_model

frame.open_page("Translate")
model = pick_model()
if model is not None:
    widgets.sentence_box()
    widgets.below_box()
    opened = widgets.open_sentence(model)
    if opened is None:
        frame.menu()
        frame.show_notices()
    else:
        frame.show_notices(opened.translation.notes)
        home.show(opened)
