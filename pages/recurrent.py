"""Recurrent: the same sentence through a recurrent network with attention and through a Transformer."""

from __future__ import annotations

from ui.shell.waiting import for_pytorch

with for_pytorch("recurrent"):
    from ui.views.recurrent import page

page.show()
