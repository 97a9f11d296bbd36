"""What an address carries: every value, the list of changes, and what cannot be read."""

from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import PROPERTY, garbled

from explorer.app.address.change_list import Listed, listed, parted
from explorer.app.address.kinds import HEAD, LINE, POSITION, TEXT
from explorer.app.address.parameters import as_params, carried, parse
from explorer.app.address.state import State, changed, elsewhere, keys, page_value
from transformer import interventions as do

for module in (
    "beam_search.beam",
    "beam_search.sampling",
    "what_if.sides",
    "cross_attention.links",
    "inside.build",
    "inside.what_if",
):
    import_module(f"explorer.app.sections.{module}")
page_value("swap", HEAD)
KINDS = {name: key.kind for name, key in keys().items()}
EXAMPLES = {
    "sentence": ("3", "all"),
    "more": ("1.1_2.3_1.4",),
    "mean": ("2-3",),
    "rule": ("mutual", "above-0.30"),
    "gold": ("sample-3", "file-1"),
    "decode": ("beam-4", "sample-7"),
    "pairs": ("1-1,3p2",),
    "hide": ("special.punctuation",),
    "language": (">>fra<<", "<2de>"),
    "links": ("mass-70", "weight-10"),
    "lesson": ("masks.3",),
    "what_if": ("temperature-0.5", "hard", "no-projections"),
    "against": ("head-1.2", "decode-beam-4", "untrained-3", "model-en-de", "forced"),
    "changes": ("ablate_cross_2_6_mean~choose_4_▁ist",),
    "off": ("1.hide_2~3.drop_3",),
    **dict.fromkeys(("words", "shares", "integrated", "play", "present"), ("yes",)),
}
"""Values that are no text, no position, and neither one of a few nor within ends."""


def written(name: str) -> st.SearchStrategy[str]:
    """What an address may hold of a value."""
    kind = KINDS[name]
    ends = [kind.write(end) for end in kind.ends or ()]
    usual = {POSITION: ("7",), HEAD: ("3.12",), LINE: ("Tom sleeps.",), TEXT: ("Tom sleeps.",)}.get(kind, ())
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
        assert float(value) == getattr(state, name)  # so what was moved into its range is named
    assert read(**as_params(state)) == (state, [])


def test_addresses_count_from_one_and_the_usual_state_has_none():
    assert as_params(State(step=3, encoder=(2, 4))) == {"step": "4", "encoder": "3.5"}
    assert (parse({}), as_params(State())) == ((State(), []), {})


def test_a_line_break_in_a_text_of_one_line_is_a_space():
    for name in ("text", "target", "other", "prompt"):
        assert getattr(read(**{name: "one\r\ntwo\u2028three"})[0], name) == "one two three"


def test_another_text_opens_at_its_first_sentence():
    now = State(text="One. Two.", sentence=1)
    assert changed(now, step=2).sentence == 1
    assert changed(now, text="One. Two. Three.").sentence is None
    assert changed(now, text="Three. Four.", sentence=1).sentence == 1


def test_a_value_of_one_page_is_left_there():
    now = changed(State(step=2, view="loss"), two=(0, 1), a=2.0, length=1.0)
    assert (now.two, now.a, now.b, now.page_values) == ((0, 1), 2.0, 0.0, (("a", 2.0), ("two", (0, 1))))
    assert elsewhere(now) == State(step=2)
    assert as_params(now) == {"step": "3", "view": "loss", "two": "1.2", "a": "2"}
    with pytest.raises(AttributeError):
        _ = State().declared_by_none
    with pytest.raises(TypeError):
        changed(State(), declared_by_none=1)
    assert changed(State(), declared_by_none=None) == State()  # of a page that nobody has opened yet


@pytest.mark.parametrize(
    ("name", "value", "held"),
    [
        *(("step", "-4", 0), ("step", "0", 0), ("step", "inf", 999_999), ("step", "2.9", 1)),
        *(("decode", "beam-900", "beam-8"), ("mean", "3-2", (1, 2)), ("mean", "2", (1, 1))),
        *(("rule", "above-0.3", "above-0.30"), ("rule", "above-7", "above-1.00")),
        ("what_if", "temperature-0", ("temperature", 0.05)),
        *(("penalty", "-5", 0.0), ("draws", "400", 16), ("seed", "1e99", 2**31 - 1)),
    ],
)
def test_a_value_out_of_range_becomes_the_nearest(name: str, value: str, held: object):
    assert getattr(read(**{name: value})[0], name) == held


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "step": ("nan", "abc", "", "1e"),
        "cross": ("3", "3.x", ".", "a.b", "nan.1"),
        "decode": ("beam-", "beam-x", "sample--1", "sample-1.5", "magic", "sample-²"),
        "pairs": ("1", "1-", "a-1", "1-1;2-2", "1-1,", "99999-1"),
        "rule": ("above-", "above-nan", "below"),
        "gold": ("../x",),
        "against": ("x", "head", "head-x", "untrained-", "uniform-1", "decode-x", "model"),
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


def test_word_links_travel_in_the_address():
    state, unreadable = read(pairs="1-1,3p2,1-1")
    assert (state.pairs, unreadable) == (frozenset({(0, 0, True), (2, 1, False)}), [])
    assert as_params(state) == {"pairs": "1-1,3p2"}


def test_a_switched_off_change_keeps_its_place_and_travels_in_the_address():
    hide, choose, drop = do.hide(1), do.choose(0, "▁a~b_c"), do.drop_source(2)
    items = (Listed(hide, False), Listed(choose, True), Listed(drop, False))
    assert parted(items) == {"changes": (choose,), "off": ((0, hide), (2, drop))}
    params = as_params(State(**parted(items)))
    assert params["off"] == "1.hide_2~3.drop_3"
    assert listed(read(**params)[0].changes, read(**params)[0].off) == items
    assert listed((hide,), ((7, drop),)) == (Listed(hide, True), Listed(drop, False))
    assert read(changes="hide_2") == (State(changes=(hide,)), [])
