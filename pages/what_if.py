"""What if: change one thing in the running model and see what it did.

Two runs beside one another.
"""

from functools import partial

from explorer.app.address import session
from explorer.app.shell import sections
from explorer.app.shell.page import open_sentence_page, show_with_model
from explorer.app.shell.waiting import for_pytorch

with for_pytorch("what_if"):
    from explorer.app.sections.what_if import changes, compare, results

switch = partial(sections.switch, "what_if")
session.adopt()
if session.current().view == "compare":
    opened = open_sentence_page("what_if", switch)
    if opened is not None:
        compare.show(opened)
else:
    opened = open_sentence_page("what_if", switch, tell=changes.tell)
    if opened is not None:
        show_with_model(opened, results.show)
