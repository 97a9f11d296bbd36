"""What the browser tells a view whose model is no longer the chosen one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ui.address import State, session
from ui.maps import explorer


def test_a_move_that_comes_with_the_choice_of_another_model_is_left_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session, "current", lambda: State(model="another"))  # its heads are not known yet
    monkeypatch.setattr(session, "on_linked_view", lambda *_: pytest.fail("the move was taken"))
    explorer._moved(SimpleNamespace(opened=SimpleNamespace(kinds=("cross",))), SimpleNamespace())
