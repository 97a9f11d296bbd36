"""What if: change one thing in the running model, decode again, and see what it did."""

from __future__ import annotations

from explorer.app.shell.waiting import for_pytorch

with for_pytorch("what_if"):
    from explorer.app.views.what_if import page

page.show()
