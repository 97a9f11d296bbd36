"""Long work on a page: its bar, its place in the queue, its button, and its end with the visitor."""

from __future__ import annotations

from threading import Event, Thread

import pytest
from app_pages import taken
from streamlit.runtime.caching import clear_session_resource_cache
from streamlit.testing.v1 import AppTest
from waiting import until

from explorer.app.server import jobs
from explorer.app.server.jobs import Job
from explorer.app.server.queue import FairQueue, turns
from explorer.app.shell.waiting import progress

SESSION = "test session id"
"""The name that AppTest gives its session."""


def _page() -> None:
    import streamlit as st

    from explorer.app.shell.waiting import progress

    with progress("Drawing", stop="stop") as tell:
        if "kept" not in st.session_state:
            tell(0.5)
            st.stop()
    st.markdown("done")


def bars(at: AppTest) -> list[str]:
    return [each.proto.text for each in at.get("progress")]


def test_who_stops_long_work_is_told_so_and_can_go_on() -> None:
    at = AppTest.from_function(_page).run()
    assert bars(at) == ["Drawing"]
    at.button("stop").click().run()
    assert [each.value for each in at.caption] == ["Stopped: drawing."]
    next(each for each in at.button if each.label == "Continue").click().run()
    assert not at.caption
    assert bars(at) == ["Drawing"]
    assert turns.count() == (0, 0)


def test_what_is_kept_takes_no_turn_and_leaves_nothing_behind() -> None:
    at = AppTest.from_function(_page)
    at.session_state["kept"] = True
    with taken():
        at.run()
    assert [each.value for each in at.markdown] == ["done"]
    assert not bars(at)
    assert not at.button


def test_long_work_says_its_place_and_starts_when_a_turn_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    own, heard = FairQueue(1), []
    other = own.turn(object(), heard.append)

    def told(before: int) -> str:
        heard.append(before)
        other.__exit__(None, None, None)
        return str(before)

    monkeypatch.setattr("explorer.app.shell.waiting.turns", own)
    monkeypatch.setattr("explorer.app.shell.waiting.place", told)
    other.__enter__()
    at = AppTest.from_function(_page).run()
    assert heard == [0]
    assert bars(at) == ["Drawing"]


def test_long_work_lets_others_go_first_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    own, done = FairQueue(1), []
    monkeypatch.setattr("explorer.app.shell.waiting.turns", own)

    def other() -> None:
        with own.turn("other", lambda before: None):
            done.append("other")

    with progress("Drawing") as tell:
        tell(0.1)
        waiting = Thread(target=other)
        waiting.start()
        until(lambda: own.count() == (1, 1))
        done.append("part")
        tell(0.2)
        done.append("next part")
    waiting.join(60)
    assert done == ["part", "other", "next part"]


class Endless:
    """Work that goes on as long as somebody waits for it."""

    def __init__(self) -> None:
        self.begun = Event()

    def __call__(self, tell):
        while True:
            self.begun.set()
            tell(1)


def endless(work: Endless) -> Job[None]:
    return Job("endless work", 10, work, lambda: None, FairQueue(1))


def test_work_ends_with_the_session_of_the_last_visitor_who_waits() -> None:
    work = Endless()
    run = endless(work)

    def page() -> None:
        import streamlit as st

        from explorer.app.server.jobs import stays

        st.session_state["stays"] = stays(st.session_state["run"])

    at = AppTest.from_function(page)
    at.session_state["run"] = run
    assert at.run().session_state["stays"]
    assert run.wait("another visitor")
    assert work.begun.wait(60)
    clear_session_resource_cache(SESSION)
    assert run.running
    run.away("another visitor")
    until(lambda: not run.running)
    assert at.run().session_state["stays"]
    assert run.running
    other = endless(Endless())
    at.session_state["run"] = other
    assert at.run().session_state["stays"]
    until(lambda: not run.running)
    clear_session_resource_cache(SESSION)
    until(lambda: not other.running)


def test_work_ends_when_its_visitor_opens_another_page(monkeypatch: pytest.MonkeyPatch) -> None:
    run, page = endless(Endless()), "heads"

    def opened() -> None:
        import streamlit as st

        from explorer.app.server.jobs import begin, stays

        begin()
        if "run" in st.session_state:
            st.session_state["stays"] = stays(st.session_state.pop("run"))

    monkeypatch.setattr(jobs, "_page", lambda: page)
    at = AppTest.from_function(opened)
    at.session_state["run"] = run
    assert at.run().session_state["stays"]
    at.run()
    assert run.running
    page = "glossary"
    at.run()
    until(lambda: not run.running)
    clear_session_resource_cache(SESSION)
