"""Recurrent: the same sentence through a recurrent network with attention and through a Transformer."""

from __future__ import annotations

from explorer.app.shell.waiting import for_pytorch

with for_pytorch("recurrent"):
    from explorer.app.views.recurrent import page

page.show()
