"""Garbage is collected between visits, and not after every run of a page."""

from __future__ import annotations

import gc
import tomllib
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import until

from ui.server.memory import Collector
from ui.views.open_file import MOST_MEGABYTES


class Knot:
    """An object in a circle, which only a collection finds."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def by_hand() -> Iterator[None]:
    """Python itself does not collect."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("by_hand")
def test_garbage_goes_once_nobody_uses_the_server_each_time_anew():
    collector = Collector(quiet=0.01)
    for _ in range(3):
        gone = weakref.ref(Knot())
        assert gone() is not None
        collector.used()
        until(lambda found=gone: found() is None)


@pytest.mark.usefixtures("by_hand")
def test_nothing_is_collected_while_the_server_is_used():
    collector = Collector(quiet=60)
    there = weakref.ref(Knot())
    for _ in range(100):
        collector.used()
    assert there() is not None


@pytest.mark.usefixtures("by_hand")
def test_a_server_that_is_never_quiet_is_collected_in_the_end():
    collector = Collector(quiet=60, latest=0.01)
    gone = weakref.ref(Knot())
    collector.used()
    until(lambda: gone() is None)


def test_streamlit_collects_nothing_itself_and_takes_no_larger_file_than_a_page_asks_for():
    path = Path(__file__).parents[3] / ".streamlit" / "config.toml"
    config = tomllib.loads(path.read_text(encoding="utf-8"))
    assert config["runner"]["postScriptGC"] is False
    assert config["server"]["maxUploadSize"] == MOST_MEGABYTES
