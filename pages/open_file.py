"""Open a file: a run that was saved here, as a whole trace or as one view, looked at without its model."""

from __future__ import annotations

from ui.views import open_file

open_file.show()
