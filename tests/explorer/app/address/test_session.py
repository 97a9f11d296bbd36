"""What an event of the linked view does to the state and the address."""

import pytest
from streamlit.testing.v1 import AppTest


def script(trace: str, more: dict[str, object]) -> None:
    import streamlit as st

    from explorer.app.address import session
    from explorer.linked.view import CursorRange

    session.adopt()
    event = {"trace": trace, "step": 2, "source": None, "seq": 1, **more}
    st.session_state[session.view_key("home")] = {"at": event}
    limits = CursorRange("here", steps=5, sources=4)
    chose = session.on_linked_view(
        "home",
        limits,
        {"cross": (2, 4)},
        lambda step, token: {"decode": f"beam-{step + token}"},
        lambda kind, head: {"cross": head, "decode": "beam-2"},
    )
    st.text(f"{chose} {session.current().step} {session.current().decode} {session.cursor().ack}")


@pytest.mark.parametrize(
    ("trace", "more", "told"),
    [
        ("there", {}, "False None greedy 1"),
        ("there", {"present": True}, "False None greedy 1"),
        ("there", {"candidate": [1, 2]}, "False None greedy 1"),
        ("there", {"off": ["cross", 1, 2]}, "False None greedy 1"),
        ("here", {}, "False 2 greedy 1"),
        ("here", {"candidate": [1, 3]}, "True 2 beam-4 1"),
        ("here", {"off": ["cross", 1, 9]}, "True 2 beam-2 1"),
        *(("here", {"off": off}, "False 2 greedy 1") for off in (None, ["cross", 1], ["cross", "1", 2], 3)),
    ],
)
def test_an_event_of_the_translation_on_the_screen_is_followed_and_that_of_another_only_heard(
    trace, more, told
):
    at = AppTest.from_function(script, args=(trace, more)).run()
    assert ([*at.exception], at.text[0].value) == ([], told)
    assert at.query_params.get("step") == (None if trace == "there" else "3")


def _page_with_a_text_too_long_for_an_address() -> None:
    import streamlit as st

    from explorer.app.address import session
    from explorer.app.address.state import State

    st.session_state.setdefault("state", State(text="a b. " * 2_000, target="c"))
    session.adopt()
    now = session.current()
    st.text(f"{now.text == 'a b. ' * 2_000} {now.sentence} {now.target}")


def test_a_link_without_the_text_that_was_too_long_for_it_keeps_its_sentence():
    at = AppTest.from_function(_page_with_a_text_too_long_for_an_address)
    at.query_params["sentence"] = "3"
    assert at.run().text[0].value == "True 2 c"


def _page_that_runs_again() -> None:
    import streamlit as st
    from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
    from streamlit.runtime.scriptrunner_utils.script_run_context import get_script_run_ctx

    from explorer.app.address import session

    if "asked" not in st.session_state:
        st.session_state["asked"] = True
        requests = get_script_run_ctx().script_requests
        requests.request_rerun(RerunData(query_string="keep=session"))
        session.rerun()
    st.text(st.query_params.get("keep", "lost"))


def test_a_request_of_the_visitor_that_waits_is_not_replaced_by_the_page_running_again():
    at = AppTest.from_function(_page_that_runs_again).run()
    assert not at.exception
    assert at.text[0].value == "session"


def _page_that_changes_something() -> None:
    import streamlit as st

    from explorer.app.address import session

    session.adopt()
    if "changed" not in st.session_state:
        st.session_state["changed"] = True
        try:
            session.rerun(view="here")
        finally:
            st.session_state["then"] = st.query_params.get("view", "nothing")
    st.text(f"{st.session_state['then']} {st.query_params['view']} {session.current().view}")


def test_the_next_run_writes_the_address_of_a_change_that_runs_the_page_again():
    at = AppTest.from_function(_page_that_changes_something)
    at.query_params["step"] = "2"
    assert at.run().text[0].value == "nothing here here"
    assert dict(at.query_params) == {"view": "here", "step": "2"}
    assert at.run().text[0].value == "nothing here here"
