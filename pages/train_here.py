"""Train here: a small model learns a small task on this server, while you watch."""

from __future__ import annotations

from ui.shell.waiting import for_pytorch

with for_pytorch("train_here"):
    from ui.views.training import workshop

workshop.show()
