"""Addresses: what they carry, what a page and the linked view do to them, and the map of the
app."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import PROPERTY, garbled
from streamlit.testing.v1 import AppTest

from explorer.app.address import page_values, sitemap
from explorer.app.address.change_list import Listed, listed, parted
from explorer.app.address.kinds import HEAD, LINE, LINES, POSITION, TEXT, keys_of
from explorer.app.address.page_values import Build
from explorer.app.address.pages import VALUES
from explorer.app.address.parameters import as_params, carried, parse
from explorer.app.address.state import KEYS, SHARED, State, changed, elsewhere
from explorer.app.sections.inside import look, steps, what_if
from explorer.linked.served import scripts
from transformer import interventions as do

KINDS = {name: key.kind for name, key in KEYS.items()}
EXAMPLES = {
    "sentence": ("3", "all"),
    "more": ("1.1_2.3_1.4",),
    "rule": ("mutual",),
    "only": ("layer-3", "previous token", "mixed"),
    "gold": ("sample-3", "file-1"),
    "decode": ("beam-4", "sample-7"),
    "pairs": ("1-1,3p2",),
    "hide": ("special.punctuation",),
    "language": (">>fra<<", "<2de>"),
    "links": ("mass-70", "weight-10"),
    "lesson": ("masks.3",),
    "what_if": ("temperature-0.5", "hard", "no-projections"),
    "against": ("head-1.2", "untrained-3", "model-en-de", "forced"),
    "changes": ("ablate_cross_2_6_mean~choose_4_▁ist",),
    "off": ("1.hide_2~3.drop_3",),
    **dict.fromkeys(("words", "shares", "chat", "integrated", "play", "present"), ("yes",)),
    **dict.fromkeys(("steps", "sources"), ("3-5.8", "1-4096", "2.4")),
}
"""Values that are no text, no position, and neither one of a few nor within ends."""


USUAL = {
    POSITION: ("7",),
    HEAD: ("3.12",),
    LINE: ("Tom sleeps.",),
    LINES: ("Tom sleeps.\nTwice.",),
    TEXT: ("Tom sleeps.",),
}


def written(name: str) -> st.SearchStrategy[str]:
    """What an address may hold of a value."""
    kind = KINDS[name]
    ends = [kind.write(end) for end in kind.ends or ()]
    usual = {
        POSITION: ("7",),
        HEAD: ("3.12",),
        LINE: ("Tom sleeps.",),
        LINES: ("Tom sleeps.\nTwice.",),
        TEXT: ("Tom sleeps.",),
    }.get(kind, ())
    return st.sampled_from([*map(str, kind.choices), *ends, *EXAMPLES.get(name, ()), *usual])


def read(**params: str) -> tuple[State, list[str]]:
    return parse({name: [value] for name, value in params.items()})


@PROPERTY
@given(st.fixed_dictionaries({}, optional={name: written(name) for name in KINDS}))
def test_an_address_carries_the_whole_state(params: dict[str, str]):
    state, unreadable = read(**params)
    assert unreadable == []
    assert read(**as_params(state)) == (state, [])


@PROPERTY
@given(
    st.sampled_from(list(KINDS)).flatmap(
        lambda name: st.tuples(st.just(name), written(name).flatmap(garbled))
    )
)
def test_what_cannot_be_read_is_named_and_what_was_read_travels_on(asked: tuple[str, str]):
    name, value = asked
    state, unreadable = read(**{name: value})
    assert unreadable in ([], [name])
    assert not unreadable or KINDS[name].ends or state == State()
    if KINDS[name].ends and not unreadable:
        assert float(value) == state.value(name)  # so what was moved into its range is named
    assert read(**as_params(state)) == (state, [])


def test_a_line_break_in_a_text_of_one_line_is_a_space():
    for name in ("target", "other"):
        assert read(**{name: "one\r\ntwo\u2028three"})[0].value(name) == "one two three"
    lines = "one\n\ntwo\nthree"
    assert read(text="one\r\n\ntwo\u2028three")[0].text == read(text=lines)[0].text == lines


def test_another_text_opens_at_its_first_sentence():
    now = State(text="One. Two.", sentence=1)
    assert changed(now, step=2).sentence == 1
    assert changed(now, text="One. Two. Three.").sentence is None
    assert changed(now, text="Three. Four.", sentence=1).sentence == 1


def test_a_cursor_that_is_moved_is_at_one_token():
    now = State(step=2, steps=(1, 2), source=4, sources=(3, 4), together="sum")
    assert as_params(now) == {
        **{"step": "3", "source": "5", "steps": "2-3", "sources": "4-5", "together": "sum"}
    }
    assert changed(now, step=3) == State(step=3, source=4, sources=(3, 4), together="sum")
    assert changed(now, source=None) == State(step=2, steps=(1, 2), together="sum")
    assert changed(now, step=3, steps=(2, 3)).steps == (2, 3)
    assert changed(now, view="loss").steps == (1, 2)


def test_a_value_of_one_page_is_left_there():
    now = changed(State(step=2, view="loss"), two=(0, 1), a=2.0, length=1.0)
    assert now.values(Build) == Build(two=(0, 1), a=2.0)
    assert now.page_values == (("a", 2.0), ("two", (0, 1)))
    assert elsewhere(now) == State(step=2)
    assert as_params(now) == {"step": "3", "view": "loss", "two": "1.2", "a": "2"}
    with pytest.raises(KeyError):
        State().value("declared_by_none")
    with pytest.raises(TypeError):
        changed(State(), declared_by_none=1)


@pytest.mark.parametrize(
    ("name", "value", "held"),
    [
        *(("step", "-4", 0), ("step", "0", 0), ("step", "inf", 999_999), ("step", "2.9", 1)),
        *(("steps", "2.2-4.3", (1, 2, 3)), ("steps", "9-7e9", tuple(range(8, 4_104)))),
        *(("only", "layer-0", "layer-1"), ("only", f"layer-{'9' * 5000}", "layer-999")),
        ("decode", "beam-900", "beam-8"),
        ("what_if", "temperature-0", ("temperature", 0.05)),
        *(("penalty", "-5", 0.0), ("draws", "400", 16), ("seed", "1e99", 2**31 - 1)),
    ],
)
def test_a_value_out_of_range_becomes_the_nearest(name: str, value: str, held: object):
    assert read(**{name: value})[0].value(name) == held


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "step": ("nan", "abc", "", "1e"),
        "steps": ("", "-", "3-", "-3", "5-3", "a", "1..2", "nan-4", "1.2;3"),
        "cross": ("3", "3.x", ".", "a.b", "nan.1"),
        "decode": ("beam-", "beam-x", "sample--1", "sample-1.5", "magic", "sample-²"),
        "pairs": ("1", "1-", "a-1", "1-1;2-2", "1-1,", "99999-1"),
        "rule": ("above-0.3", "below"),
        "only": ("layer", "layer-", "layer--1", "layer-x", "layer-²", "sinks", "", "head-1"),
        "sort": ("", "Layer", "weights"),
        "gold": ("../x",),
        "against": ("x", "head", "head-x", "untrained-", "uniform-1", "decode-beam-4", "model"),
        "what_if": ("magic", "hard-2", "temperature-nan"),
        "off": ("hide_2", "1.", "x.hide_2", "1.magic_2", "~", ""),
    }.items(),
)
def test_what_means_nothing_is_named(name: str, values: tuple[str, ...]):
    assert [read(**{name: value}) for value in values] == [(State(), [name])] * len(values)


def test_of_repeated_parameters_the_last_counts_and_is_named():
    assert parse({"step": ["1", "2"]}) == (State(step=1), ["step"])


def test_long_texts_stay_out_of_the_address():
    state = State(text="ö" * 700, step=2)
    assert not carried(state)
    assert as_params(state) == {"step": "3"}


def test_a_switched_off_change_keeps_its_place_and_travels_in_the_address():
    hide = do.hide(1)
    choose = do.choose(0, "▁a~b_c")
    drop = do.drop_source(2)
    items = (Listed(hide, False), Listed(choose, True), Listed(drop, False))
    assert parted(items) == {"changes": (choose,), "off": ((0, hide), (2, drop))}
    params = as_params(State(**parted(items)))
    assert params["off"] == "1.hide_2~3.drop_3"
    assert listed(read(**params)[0].changes, read(**params)[0].off) == items
    assert listed((hide,), ((7, drop),)) == (Listed(hide, True), Listed(drop, False))
    assert read(changes="hide_2") == (State(changes=(hide,)), [])


# --- events and pages ----------------------------------------------------------------------------


def script(trace: str, more: dict[str, object]) -> None:
    import streamlit as st

    from explorer.app.address import session
    from explorer.linked.view.events import CursorRange

    session.adopt()
    event = {"trace": trace, "step": 2, "source": None, "seq": 1, **more}
    st.session_state[f"{session.LINKED}home"] = {"at": event}
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
        *(
            ("here", {"off": off}, "False 2 greedy 1")
            for off in (None, ["cross", 1], ["cross", "1", 2], 3)
        ),
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


# --- the map of the app --------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[4]
PLACES = tuple(sitemap.PLACES)
MENU = [entry for group in sitemap.GROUPS for entry in sitemap.entries(group.name)]


def test_every_script_is_a_page_and_stands_once_in_the_menu():
    scripts = {path.relative_to(ROOT).as_posix() for path in (ROOT / "pages").glob("*.py")} | {
        "app.py"
    }
    assert {sitemap.script(name) for name in sitemap.PAGES} == scripts
    assert sorted(name for entry in MENU for name in entry) == sorted(sitemap.PAGES)


def test_a_page_stands_after_the_one_that_it_follows_and_before_those_that_followed_it():
    follows = {"b": "a", "a": "", "d": "b", "c": "a"}
    rest = {"purpose": "x", "group": "g", "icon": "i"}
    pages = {
        name: sitemap.Page(script=name, name=name, follows=before, **rest)
        for name, before in follows.items()
    }
    assert [*sitemap.in_order(pages)] == ["a", "c", "b", "d"]
    with pytest.raises(ValueError, match=r"^b.py follows a, which is no page\.$"):
        sitemap.in_order({"b": pages["b"]})


def test_pages_that_are_looked_at_together_are_one_entry_of_the_menu():
    heads = ("cross_attention", "encoder_self_attention", "decoder_self_attention", "heads")
    assert [entry for entry in MENU if len(entry) > 1] == [heads]
    assert [*sitemap.ENTRIES] == [heads[0]]
    assert {name for name in sitemap.PAGES if sitemap.beside(name) == heads} == {*heads}


def test_who_follows_the_links_from_home_sees_every_page_in_the_order_of_the_pages():
    seen, name = [], sitemap.HOME
    while name.partition("/")[0] not in seen or name.partition("/")[0] == seen[-1]:
        seen.append(name.partition("/")[0])
        page, _, view = name.partition("/")
        name = sitemap.PLACES[sitemap.at(page, view)].after
    pages = [*sitemap.PAGES]
    first = [*sitemap.PAGES].index(sitemap.HOME)
    assert list(dict.fromkeys(seen)) == pages[first:] + pages[:first]
    assert not [name for name in PLACES if "." in sitemap.PLACES[name].name], (
        "a name is no sentence"
    )


def test_every_word_of_the_glossary_has_two_sentences_and_a_place():
    entries = json.loads((scripts() / "page" / "glossary.json").read_text(encoding="utf-8"))
    for word, entry in entries.items():
        assert entry["written"], word
        assert entry["told"].endswith("."), word
        assert entry["see"] in PLACES, word
        assert {place.partition("/")[0] for place in entry.get("on", ())} <= set(sitemap.PAGES), (
            word
        )
    everywhere = [entry for entry in entries.values() if "on" not in entry]
    written = [each.lower() for entry in everywhere for each in entry["written"]]
    assert len(written) == len(set(written))


def test_the_names_that_an_address_knows_are_those_that_the_sections_draw():
    assert tuple(steps.STEPS) == page_values.STEPS
    assert tuple(what_if.ARITHMETIC) == page_values.ARITHMETIC
    assert tuple(look.NAMES) == page_values.NOTATIONS


def test_a_value_s_name_is_declared_once():
    names = [*SHARED, *(name for values in VALUES for name in keys_of(values))]
    assert len(names) == len(set(names))
