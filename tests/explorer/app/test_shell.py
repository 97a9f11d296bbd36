"""What stands around a page: states fitted to a model, kinds that it lacks, and long work with its
bar."""

from functools import partial
from threading import Event, Thread

import pytest
from app_pages import taken
from sources import named
from streamlit.runtime.caching import clear_session_resource_cache
from streamlit.testing.v1 import AppTest
from waiting import until

from explorer.app.server import models
from explorer.app.server.jobs import Job
from explorer.app.server.queue import FairQueue, turns
from explorer.app.shell.fitting import fit_head, fit_model, fit_position
from explorer.app.shell.needs import PAGES, has, sentence
from explorer.app.shell.waiting import progress

SESSION = "test session id"
"""The name that AppTest gives its session."""
GONE = "The model that the address names is not here, so en-de is shown."
LARGE = "This model has 3 layers of 8 heads; cross shows head 3 of layer 3."
SMALL = "This model has 1 layer of 1 head; cross shows head 1 of layer 1."
FILE = "The file that the address names is not open, so en-de is shown. Open the file again."


@pytest.mark.parametrize(
    ("fit", "wanted", "notes"),
    [
        *(
            (partial(fit_model, name, ["en-de", "own"]), "en-de", [GONE])
            for name in ("../../etc", "none", "")
        ),
        (partial(fit_model, "imported: a (abcdef)", ["en-de", "own"]), "en-de", [FILE]),
        (partial(fit_model, "own", ["en-de", "own"]), "own", []),
        (partial(fit_model, None, ["en-de", "own"]), "en-de", []),
        (partial(fit_head, "cross", (9, 2), (3, 8), (0, 0)), (2, 2), [LARGE]),
        (partial(fit_head, "cross", (0, 2), (1, 1), (0, 0)), (0, 0), [SMALL]),
        (partial(fit_head, "cross", (2, 7), (3, 8), (0, 0)), (2, 7), []),
        (partial(fit_head, "cross", None, (3, 8), (1, 1)), (1, 1), []),
        (partial(fit_position, "step", 40, 5), 4, ["This sentence has 5 steps; step 5 is shown."]),
        (partial(fit_position, "step", 4, 1), 0, ["This sentence has 1 step; step 1 is shown."]),
        (partial(fit_position, "step", 4, 5), 4, []),
        (partial(fit_position, "step", None, 5), None, []),
    ],
)
def test_what_a_model_or_a_sentence_lacks_becomes_the_nearest_and_is_named(
    fit, wanted: object, notes: list
):
    said = list[str]()
    assert (fit(say=said.append), said) == (wanted, notes)


def test_a_sentence_names_what_is_missing_what_is_there_and_what_to_do():
    told = sentence(models.find("recurrent/dot"), ["encoder", "decoder"])
    assert "encoder self-attention and masked decoder self-attention, which recurrent/dot" in told
    assert "does not have: its only attention is cross-attention. Choose" in told
    several = sentence(models.find("en-pt"), ["cross"])
    assert (
        "does not have: it has encoder self-attention, masked decoder self-attention and "
        "cross-attention. Choose another model on the left."
    ) in several
    kinds = ("encoder", "decoder", "cross")
    assert [kind for kind in kinds if has(models.find("recurrent/dot"), kind)] == ["cross"]
    assert all(has(source, kind) for source in (None, named("nothing here")) for kind in kinds)
    assert {*PAGES} == {"encoder", "decoder", "cross"}


# --- long work -----------------------------------------------------------------------------------


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


def test_who_stops_long_work_is_told_so_and_can_go_on_and_what_is_kept_takes_no_turn():
    at = AppTest.from_function(_page).run()
    assert bars(at) == ["Drawing"]
    at.button("stop").click().run()
    assert [each.value for each in at.caption] == ["Stopped: drawing."]
    next(each for each in at.button if each.label == "Continue").click().run()
    assert (bars(at), [*at.caption], turns.count()) == (["Drawing"], [], (0, 0))
    at = AppTest.from_function(_page)
    at.session_state["kept"] = True
    with taken():
        at.run()
    assert ([each.value for each in at.markdown], bars(at), [*at.button]) == (["done"], [], [])


def test_long_work_lets_others_go_first_now_and_then(monkeypatch: pytest.MonkeyPatch):
    own = FairQueue(1)
    done = []
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


def test_work_ends_with_the_session_of_the_last_visitor_who_waits():
    work = Endless()
    job = endless(work)

    def page() -> None:
        import streamlit as st

        from explorer.app.server.jobs import stays

        st.session_state["stays"] = stays(st.session_state["job"])

    at = AppTest.from_function(page)
    at.session_state["job"] = job
    assert at.run().session_state["stays"]
    assert job.wait("another visitor")
    assert work.begun.wait(60)
    clear_session_resource_cache(SESSION)
    assert job.running
    job.leave("another visitor", stops=False)
    until(lambda: not job.running)
    assert at.run().session_state["stays"]
    assert job.running
    other = endless(Endless())
    at.session_state["job"] = other
    assert at.run().session_state["stays"]
    until(lambda: not job.running)
    clear_session_resource_cache(SESSION)
    until(lambda: not other.running)


def test_work_ends_when_its_visitor_opens_another_page():
    job = endless(Endless())

    def opened() -> None:
        import streamlit as st

        from explorer.app.address import session
        from explorer.app.server.jobs import seat, stays
        from explorer.app.server.visits import begin

        if st.session_state.get("turned"):
            seat(session.visit().name).page = "another"
        begin()
        if "job" in st.session_state:
            st.session_state["stays"] = stays(st.session_state.pop("job"))

    at = AppTest.from_function(opened)
    at.session_state["job"] = job
    assert at.run().session_state["stays"]
    at.run()
    assert job.running
    at.session_state["turned"] = True
    at.run()
    until(lambda: not job.running)
    clear_session_resource_cache(SESSION)
