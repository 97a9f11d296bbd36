"""The shipped recording of one weight in training."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from transformer.study.learning.moments import Recording, read_recording
from ui.server import catalogue

FILE = catalogue.ROOT / "assets" / "adam.json"


def recording() -> Recording | None:
    """The recording; None if the file is not here.

    Raises:
        ValueError: the file is damaged.
    """
    return _read(FILE, FILE.stat().st_mtime_ns) if FILE.is_file() else None


@st.cache_resource(show_spinner=False, max_entries=2)
def _read(path: Path, changed: int) -> Recording:
    return read_recording(path)
