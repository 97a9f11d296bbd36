"""Open a file: a run saved from this app as a whole trace, shown without its model."""

from __future__ import annotations

from explorer.app.shell.waiting import for_pytorch

with for_pytorch("open_file"):
    from explorer.app.views import open_file

open_file.show()
