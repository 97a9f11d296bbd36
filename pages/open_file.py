"""Open a file: a run saved from this app as a whole trace, shown without its model."""

from __future__ import annotations

from ui.shell.waiting import for_pytorch

with for_pytorch("open_file"):
    from ui.views import open_file

open_file.show()
