"""The list of changes: what acts, what is switched off, and how both travel in an address."""

import pytest

from explorer.app.address.change_list import Listed, listed, parted
from explorer.app.address.parameters import as_params, parse
from explorer.app.address.state import State
from transformer import interventions as do

HIDE, CHOOSE, DROP = do.hide(1), do.choose(0, "▁a~b_c"), do.drop_source(2)
ITEMS = (Listed(HIDE, False), Listed(CHOOSE, True), Listed(DROP, False))


def read(**params: str) -> tuple[State, list[str]]:
    return parse({name: [value] for name, value in params.items()})


def test_a_switched_off_change_keeps_its_place():
    found = parted(ITEMS)
    assert found == {"changes": (CHOOSE,), "off": ((0, HIDE), (2, DROP))}
    assert listed(**found) == ITEMS


def test_the_address_carries_what_is_switched_off():
    params = as_params(State(**parted(ITEMS)))
    assert params["off"] == "1.hide_2~3.drop_3"
    assert listed(read(**params)[0].changes, read(**params)[0].off) == ITEMS


def test_a_place_beyond_the_end_is_the_end():
    assert listed((HIDE,), ((7, DROP),)) == (Listed(HIDE, True), Listed(DROP, False))


def test_an_older_link_names_changes_that_act():
    assert read(changes="hide_2") == (State(changes=(HIDE,)), [])


@pytest.mark.parametrize("text", ["hide_2", "1.", "x.hide_2", "1.magic_2", "~", ""])
def test_what_cannot_be_read_is_named(text: str):
    assert read(off=text) == (State(), ["off"])
