"""Inside a head: one query step by step, from the residual stream and back into it."""

from __future__ import annotations

from explorer.app.shell.page import open_sentence_page, with_model
from explorer.app.shell.waiting import for_pytorch

with for_pytorch("inside_a_head"):
    from explorer.app.views.inside import page

opened = open_sentence_page("inside_a_head", page.controls, changes=page.holds, kinds=("encoder", "cross"))
if opened is not None:
    with_model(opened, page.show)
