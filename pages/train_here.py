"""Train here: a small model learns a small task on this server, while you watch."""

from __future__ import annotations

from explorer.app.shell.waiting import for_pytorch

with for_pytorch("train_here"):
    from explorer.app.views.training import workshop

workshop.show()
