"""Heads over sentences: statistics, roles and examples."""

from __future__ import annotations

from explorer.app.shell.waiting import for_pytorch

with for_pytorch("heads"):
    from explorer.app.views.heads import page

page.show()
