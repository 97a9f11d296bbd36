"""A damaged file beside a model ends no page: the page says which file it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from app_pages import run, words

CONTENTS = ("{", "[]", "{}", "null", '{"examples": null}', '{"examples": []}', '{"examples": [{"label": 1}]}')


@pytest.mark.parametrize("content", CONTENTS)
def test_damaged_examples_are_named_and_the_usual_ones_offered(own_models: Path, content: str):
    shutil.copytree(own_models / "copy", own_models / "damaged")
    (own_models / "damaged" / "examples.json").write_text(content)
    told = words(run("app.py", model="damaged"))
    assert "examples.json beside the model is damaged; remove it, or write it again." in told.replace(
        "\\", ""
    )
