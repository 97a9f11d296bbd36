"""What the browser asks of a view whose model is no longer the chosen one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from explorer.app.address import State, session
from explorer.app.maps import explorer

SIZES = {"encoder": (2, 4), "cross": (3, 4)}
OPENED = SimpleNamespace(translation=SimpleNamespace(config=SimpleNamespace(sizes=SIZES)))
SCENE = explorer.Scene(SimpleNamespace(), OPENED, ("encoder",))
OTHERS = [
    State(model="another"),  # its heads are not known yet
    State(encoder=(0, 0), cross=(3, 0)),
    State(encoder=(1, 4), cross=(2, 3)),
]


@pytest.mark.parametrize("state", OTHERS)
def test_a_move_that_comes_with_the_choice_of_another_model_is_left_alone(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "current", lambda: state)
    monkeypatch.setattr(session, "on_linked_view", lambda *_: pytest.fail("the move was taken"))
    explorer._moved(SCENE, SimpleNamespace())


class AgainError(Exception):
    """The page is run again."""


def again() -> None:
    raise AgainError


@pytest.mark.parametrize("state", OTHERS)
def test_a_part_that_runs_before_the_page_of_another_model_is_drawn_runs_that_page(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "current", lambda: state)
    monkeypatch.setattr(session, "rerun", again)
    with pytest.raises(AgainError):
        explorer._current(SCENE)
    fits = State(encoder=(1, 3), cross=(2, 3))
    monkeypatch.setattr(session, "current", lambda: fits)
    assert explorer._current(SCENE) is fits
