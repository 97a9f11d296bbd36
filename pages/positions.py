"""Positions: what each positional encoding is, what it does to a sentence, and how much it helps."""

from __future__ import annotations

from ui.shell.waiting import for_pytorch

with for_pytorch("positions"):
    from ui.views.positions import page

page.show()
