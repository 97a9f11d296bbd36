"""The way of one typed sentence through the files: a guard against asking for the same thing again.

The passes of the model itself, one a token and layer, are left out.
"""

import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

from app_pages import run

from explorer.app.server import models

ROOT = f"{Path(__file__).parents[2]}/"
MODEL = {f"{ROOT}transformer/{name}.py" for name in ("attention", "encodings", "hooks", "layers", "model")}


def ours(frame: FrameType | None) -> str:
    """The file of the project from which a call comes, past the libraries between."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(ROOT) and "/.venv/" not in name and not name.startswith(f"{ROOT}tests/"):
            return name
        frame = frame.f_back
    return ""


def test_a_typed_sentence_finds_its_model_at_most_twice_and_seldom_changes_file():
    run(model="en-pt", text="He is old.")  # what is loaded once does not count
    moves, found, own = 0, Counter[str](), models.find.__code__

    def watch(frame: FrameType, event: str, _: object) -> None:
        nonlocal moves
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            here, there = ours(frame), ours(frame.f_back)
            moves += here != there and not {here, there} & MODEL
            if frame.f_code is own:
                found[frame.f_locals["name"]] += 1

    threading.setprofile(watch)
    try:
        at = run(model="en-pt", text="He lives in a big white house.")
    finally:
        threading.setprofile(None)
        sys.setprofile(None)
    assert not at.exception
    assert found["en-pt"] <= 2, found
    assert moves <= 2_300, moves
