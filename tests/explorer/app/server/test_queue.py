"""The queue of what pages compute: of each browser one run at a time, and of browsers by turns."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from waiting import until

from explorer.app.server import queue
from explorer.app.server.queue import FairQueue


class Held:
    """Runs of a queue in threads of their own, each until it is let go."""

    def __init__(self, pages: FairQueue) -> None:
        self.pages, self.ran, self._gates = pages, list[str](), dict[str, threading.Event]()

    def start(self, name: str) -> None:
        """Starts a run; its first letter is its browser. Returns when it waits or computes."""
        gate, asked = (
            self._gates.setdefault(name, threading.Event()),
            len(self.pages._waiting) + len(self.ran),
        )

        def run() -> None:
            with self.pages.turn(name, browser=name[0]):
                self.ran.append(name)
                gate.wait()

        threading.Thread(target=run, daemon=True).start()
        until(lambda: len(self.pages._waiting) + len(self.ran) > asked)

    def end(self, name: str) -> None:
        self._gates[name].set()


@pytest.mark.parametrize(
    ("at_once", "asked", "ran"),
    [
        (
            2,
            ["a1", "a2", "a3", "b1"],
            ["a1", "b1", "a2", "a3"],
        ),  # two tabs of a browser never compute at once
        (1, ["a1", "a2", "a3", "b1", "c1"], ["a1", "b1", "c1", "a2", "a3"]),  # browsers come by turns
        (1, ["a1", "b1", "b2", "a2", "c1"], ["a1", "b1", "c1", "a2", "b2"]),
        (3, ["a1", "b1", "c1", "d1"], ["a1", "b1", "c1", "d1"]),
    ],
)
def test_runs_compute_in_turn(at_once: int, asked: list[str], ran: list[str]) -> None:
    held = Held(FairQueue(at_once, alone=True))
    for name in asked:
        held.start(name)
    browsers = list(dict.fromkeys(name[0] for name in asked))[:at_once]
    until(lambda: len(held.ran) == len(browsers))
    for count, name in enumerate(ran, start=1):
        until(lambda count=count: len(held.ran) >= count)
        held.end(name)
    assert held.ran == ran


def test_a_run_that_only_waits_lets_another_browser_compute_and_goes_on_at_once() -> None:
    pages, other = FairQueue(1, alone=True), threading.Event()
    held = Held(pages)
    with pages.turn("a", browser="a"):
        held.start("a2")
        held.start("b1")
        assert held.ran == []
        with pages.paused():
            until(lambda: held.ran == ["b1"])
        other.set()
        assert held.ran == ["b1"]  # it computes, although b1 does
    held.end("b1")
    until(lambda: held.ran == ["b1", "a2"])
    held.end("a2")


def test_outside_of_a_run_nothing_is_paused() -> None:
    pages = FairQueue(1, alone=True)
    with pages.paused(), pages.turn("a", browser="a"):
        pass


@pytest.mark.parametrize(("cookie", "alone"), [("one", True), ("", False)])
def test_every_run_of_streamlit_waits_for_its_turn(
    cookie: str, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, gate = threading.Barrier(2, timeout=0.3 if alone else 60), list[Callable[[], object]]()

    def run(runner: object, asked: object) -> None:
        try:
            both.wait()
            gate.append(both.reset)
        except threading.BrokenBarrierError:
            pass

    monkeypatch.setattr(ScriptRunner, "_run_script", run)
    monkeypatch.setattr(queue.session, "cookie", lambda: cookie)
    queue.begin()
    queue.begin()
    threads = [
        threading.Thread(target=ScriptRunner._run_script, args=(SimpleNamespace(), None)) for _ in range(2)
    ]
    with ExitStack() as stack:
        for each in threads:
            each.start()
            stack.callback(each.join)
    assert len(gate) == (0 if alone else 2)
