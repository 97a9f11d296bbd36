"""What is copied as Python runs, and gives the head that is on the screen."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sources import named

from explorer.app.maps.as_python import calls
from explorer.app.server import catalogue, runs
from explorer.app.server.runs import Request
from transformer import interventions as do

TEXT = 'The cat said: "old".'
CHANGES = (do.ablate("cross", 0, 1, "zero"), do.hide(1))


@pytest.mark.parametrize(
    "asked",
    [
        Request(named("en-de"), TEXT, "greedy", None),
        Request(named("en-de"), TEXT, "beam-3", None, CHANGES),
        Request(named("en-de"), TEXT, "sample-7", None),
        Request(named("en-de"), TEXT, "greedy", "Die Katze ist alt.", CHANGES),
    ],
    ids=lambda asked: f"{asked.decode} {len(asked.changes)} {asked.target}",
)
def test_the_copied_calls_give_the_same_run_and_head(asked: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(catalogue.ROOT)
    own = runs.translate(asked)
    look: Any = SimpleNamespace(opened=SimpleNamespace(asked=asked), kind="cross", head=(2, 1))
    code = calls(look)
    found: dict[str, Any] = {}
    exec(code, found)
    assert found["t"].target_ids == own.target_ids
    assert np.array_equal(found["view"].weights, own.head("cross", 2, 1).weights)
    assert "load_translator('assets/models/en-de')" in code
    assert Path("assets").is_dir()
