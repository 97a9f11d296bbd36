"""Heads over sentences: statistics, roles and examples."""

from __future__ import annotations

from ui.shell.waiting import for_pytorch

with for_pytorch("heads"):
    from ui.views.heads import page

page.show()
