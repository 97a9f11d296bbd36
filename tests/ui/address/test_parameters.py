from __future__ import annotations

import pytest

from ui.address.parameters import as_params, carried, parse
from ui.address.state import State

FULL = State(
    text="Tom sleeps.",
    model="en-de",
    step=3,
    source=0,
    encoder=(2, 4),
    decoder=(1, 0),
    cross=(2, 3),
    view="trained",
    decode="beam-4",
    target="Tom schläft.",
    batch="More.",
    order="aer",
)


def read(**params: str) -> tuple[State, list[str]]:
    return parse({name: [value] for name, value in params.items()})


def test_an_address_carries_the_whole_state():
    assert read(**as_params(FULL)) == (FULL, [])


def test_addresses_count_from_one():
    params = as_params(FULL)
    assert (params["step"], params["source"], params["encoder"]) == ("4", "1", "3.5")


def test_an_empty_address_is_the_usual_state():
    assert parse({}) == (State(), [])
    assert as_params(State()) == {}


@pytest.mark.parametrize("value", ["nan", "abc", "", "1e"])
def test_unreadable_positions_are_named(value: str):
    state, unreadable = read(step=value)
    assert state.step is None
    assert unreadable == ["step"]


@pytest.mark.parametrize(("value", "step"), [("-4", 0), ("0", 0), ("inf", 999_999), ("2.9", 1)])
def test_positions_out_of_range_become_the_nearest(value: str, step: int):
    assert read(step=value)[0].step == step


@pytest.mark.parametrize("value", ["3", "3.x", ".", "a.b", "nan.1"])
def test_unreadable_heads_are_named(value: str):
    assert read(cross=value) == (State(), ["cross"])


@pytest.mark.parametrize(
    ("value", "decode"),
    [("greedy", "greedy"), ("beam-4", "beam-4"), ("beam-900", "beam-8"), ("sample-7", "sample-7")],
)
def test_ways_of_decoding_are_read(value: str, decode: str):
    assert read(decode=value)[0].decode == decode


@pytest.mark.parametrize("value", ["beam-", "beam-x", "sample--1", "sample-1.5", "magic", "sample-²"])
def test_unknown_ways_of_decoding_are_named(value: str):
    assert read(decode=value) == (State(), ["decode"])


def test_of_repeated_parameters_the_last_counts_and_is_named():
    assert parse({"step": ["1", "2"]}) == (State(step=1), ["step"])


def test_other_arithmetic_and_the_notation_are_read_and_written():
    for written in ("inputs", "local-best-3", "local-predicted-2", "local-4", "no-projections", "pair-2"):
        state, unreadable = read(what_if=written, notation="lecture")
        assert unreadable == []
        assert as_params(state) == {"what_if": written, "notation": "lecture"}
    assert read(what_if="local-predicted-0")[0].what_if == ("local-predicted", 1.0)
    assert read(notation="greek") == (State(), ["notation"])


def test_long_texts_stay_out_of_the_address():
    state = State(text="ö" * 700, step=2)
    assert not carried(state)
    assert as_params(state) == {"step": "3"}


def test_word_links_travel_in_the_address():
    state, unreadable = read(pairs="1-1,3p2,1-1")
    assert (state.pairs, unreadable) == (frozenset({(0, 0, True), (2, 1, False)}), [])
    assert as_params(state) == {"pairs": "1-1,3p2"}
    assert as_params(State()) == {}


@pytest.mark.parametrize("value", ["1", "1-", "a-1", "1-1;2-2", "1-1,", "99999-1"])
def test_unreadable_pairs_are_named(value: str):
    assert read(pairs=value) == (State(), ["pairs"])


@pytest.mark.parametrize(
    ("name", "value", "held"),
    [
        ("mean", "2-3", (1, 2)),
        ("mean", "3-2", (1, 2)),
        ("mean", "2", (1, 1)),
        ("rule", "mutual", "mutual"),
        ("rule", "above-0.3", "above-0.30"),
        ("rule", "above-7", "above-1.00"),
        ("gold", "sample-3", "sample-3"),
    ],
)
def test_choices_of_an_alignment_are_read(name: str, value: str, held: object):
    assert getattr(read(**{name: value})[0], name) == held


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mean", "x"),
        ("rule", "above-"),
        ("rule", "above-nan"),
        ("rule", "below"),
        ("gold", "../x"),
        ("rows", "x"),
    ],
)
def test_choices_that_mean_nothing_are_named(name: str, value: str):
    assert read(**{name: value}) == (State(), [name])
