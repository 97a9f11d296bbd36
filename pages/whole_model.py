"""The whole model: the running model as a diagram, and what each part does to the token at the cursor."""

from __future__ import annotations

from explorer.app.shell.changed import of_tokens
from explorer.app.shell.page import open_sentence_page, with_model
from explorer.app.shell.waiting import for_pytorch

with for_pytorch("whole_model"):
    from explorer.app.views.anatomy import page

opened = open_sentence_page("whole_model", changes=of_tokens, kinds=("encoder", "cross"))
if opened is not None:
    with_model(opened, page.show)
