"""Visits are bounded, and so is what they upload; a visit that was left is over by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from app_pages import run
from streamlit.runtime.caching import clear_session_resource_cache
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from explorer.app.server import hosted, visits
from transformer.hub.settings import HOSTED_VARIABLE

SESSION = "test session id"
"""The name that AppTest gives its session."""


class Server:
    """Stands for Streamlit's own; knows which sessions have an open page."""

    def __init__(self, *active: str) -> None:
        self.active, self.closed = set(active), list[str]()
        self.uploaded_file_mgr = MemoryUploadedFileManager("/upload")

    def is_active_session(self, at: str) -> bool:
        return at in self.active

    def close_session(self, at: str) -> None:
        self.closed.append(at)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other visits are counted, and those of a test are forgotten."""
    monkeypatch.setattr(visits, "_visits", set())
    monkeypatch.setattr(visits, "_watched", set())
    clear_session_resource_cache(SESSION)


def held(uploads: MemoryUploadedFileManager, at: str) -> list[str]:
    return [each.name for each in uploads.file_storage.get(at, {}).values()]


def send(uploads: MemoryUploadedFileManager, at: str, name: str, size: int = 1) -> None:
    uploads.add_file(at, UploadedFileRec(f"{at}/{name}", name, "text/plain", bytes(size)))


def test_a_visit_keeps_its_newest_uploads_and_a_session_without_a_page_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(visits, "MOST_BYTES", 100)
    monkeypatch.setattr(visits, "MOST_FILES", 3)
    uploads, here = MemoryUploadedFileManager("/upload"), {"a", "b"}
    for name in ("early", "bird"):
        send(uploads, "without a page", name)
        send(uploads, "a", name, 90)
    visits.bound(uploads, here)
    assert held(uploads, "without a page") == []
    assert held(uploads, "a") == ["bird"]
    send(uploads, "without a page", "1")
    for name in "1234":
        send(uploads, "b", name)
    assert held(uploads, "without a page") == []
    assert held(uploads, "b") == ["2", "3", "4"]
    send(uploads, "b", "5", 100)
    assert held(uploads, "b") == ["5"]
    assert held(uploads, "a") == ["bird"]


def test_all_together_are_bounded_and_who_holds_most_loses_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits, "MOST_TOGETHER", 100)
    uploads = MemoryUploadedFileManager("/upload")
    visits.bound(uploads, {"a", "b", "c"})
    send(uploads, "a", "mine", 10)
    for at in ("b", "c"):
        for name in "12":
            send(uploads, at, name, 25)
    assert held(uploads, "a") == ["mine"]
    assert len(held(uploads, "b")) + len(held(uploads, "c")) == 3


class Clock:
    """Stands for an event loop: calls are made by hand, one after the other."""

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    def call_later(self, seconds: float, call: Callable[..., None], *arguments: Any) -> None:
        assert seconds == visits.LOOK
        self.calls.append((call, arguments))

    def tick(self) -> None:
        call, arguments = self.calls.pop()
        call(*arguments)


def test_a_visit_that_was_left_is_over_and_one_that_came_back_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    server, clock = Server("a"), Clock()
    monkeypatch.setattr(visits.runtime, "exists", lambda: True)
    monkeypatch.setattr(visits.runtime, "get_instance", lambda: server)
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: clock)
    monkeypatch.setattr(visits, "get_script_run_ctx", lambda: type("At", (), {"session_id": "a"}))
    monkeypatch.setattr(visits, "_visit", visits._visit.__wrapped__)
    leave = visits._visit("a")
    server.active.clear()
    leave()
    leave()
    assert len(clock.calls) == 1
    clock.tick()
    server.active.add("a")
    clock.tick()
    server.active.clear()
    clock.tick()
    assert server.closed == []
    clock.tick()
    assert server.closed == ["a"]
    assert not clock.calls


def test_a_visitor_too_many_is_told_so_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOSTED_VARIABLE, "on")
    monkeypatch.setenv(hosted.VISITORS, "2")
    visits._visits.update({"one", "two"})  # AppTest's server takes every session for an active one
    at = run()
    assert [each.value for each in at.info] == [
        "This server is full, as 2 visitors are here: come back later."
    ]
    assert not at.text_input
    visits._visits.remove("two")
    assert run().text_input
    visits._visits.add("two")
    assert run().text_input, "who is here stays"


def test_without_hosted_mode_visitors_are_not_counted_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HOSTED_VARIABLE, raising=False)
    visits._visits.update(map(str, range(1_000)))
    assert run().text_input
