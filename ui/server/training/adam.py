"""The shipped recording of one weight in training."""

from __future__ import annotations

from lab.learning.moments import Recording, read_recording
from ui.server import catalogue
from ui.server.training.shipped import shipped

FILE = catalogue.ROOT / "assets" / "adam.json"


def recording() -> Recording | None:
    """The recording; None if the file is not here.

    Raises:
        ValueError: the file is damaged.
    """
    return shipped(FILE, read_recording)
