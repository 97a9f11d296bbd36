"""How samples are drawn belongs to what identifies a translation, and to nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.app.address.parameters import as_params, parse
from explorer.app.address.state import State
from explorer.app.server import models
from explorer.app.server.runs import USUAL, Drawing, drawing_of, request
from transformer import Sampling

SAMPLED = State(text="one two", decode="sample-3", temperature=1.2, top_k=5, top_p=0.9)


def asked(state: State):
    return request(state, models.find("en-de"), "one two")


@pytest.mark.parametrize("changed", [{"temperature": 0.5}, {"top_k": None}, {"top_p": None}])
def test_another_setting_is_another_translation(changed: dict[str, object]):
    one, other = asked(SAMPLED), asked(replace(SAMPLED, **changed))
    assert one != other
    assert one.trace != other.trace


@pytest.mark.parametrize("decode", ["greedy", "beam-4"])
def test_without_sampling_the_settings_change_nothing(decode: str):
    state = replace(SAMPLED, decode=decode)
    assert asked(state) == asked(State(text="one two", decode=decode))
    assert asked(state).drawing == USUAL


def test_the_settings_are_those_of_the_package():
    assert drawing_of(SAMPLED).sampling(3) == Sampling(1.2, 5, 0.9, 3)
    assert str(Drawing(1.2, 1000, 0.9)) == "temperature 1.2, top-k 1,000, top-p 0.9"


def test_the_settings_travel_in_the_address_and_old_links_open_as_before():
    params = as_params(SAMPLED)
    assert parse({name: [value] for name, value in params.items()}) == (SAMPLED, [])
    old, _ = parse({"decode": ["sample-3"]})
    assert drawing_of(old) == USUAL


@pytest.mark.parametrize(
    ("name", "value", "held"),
    [
        ("temperature", "99", 3.0),
        ("temperature", "-inf", 0.1),
        ("top_k", "0", 1),
        ("top_p", "0", 0.05),
    ],
)
def test_values_out_of_range_become_the_nearest_and_are_named(name: str, value: str, held: float):
    state, unreadable = parse({name: [value]})
    assert getattr(state, name) == held
    assert unreadable == [name]
