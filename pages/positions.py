"""Positions: what each positional encoding is, what it does to a sentence, and how much it helps."""

from __future__ import annotations

from explorer.app.shell.waiting import for_pytorch

with for_pytorch("positions"):
    from explorer.app.views.positions import page

page.show()
