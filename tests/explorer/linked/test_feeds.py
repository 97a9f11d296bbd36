"""The kinds of feeds, as the scripts know them."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, TypedDict, get_args, get_type_hints

import pytest

from explorer.linked.living import declare
from explorer.linked.served import scripts
from explorer.linked.view import wire


def test_the_scripts_have_the_declarations_of_today():
    again = "python -m explorer.linked.living.declare"
    assert declare.file().read_text("utf-8") == declare.declarations(), f"Write them again: {again}"


class Leaf(TypedDict):
    text: str


class Tree(TypedDict):
    draw: Literal["a", "b"]
    leaf: Leaf
    size: tuple[int, float]
    rows: Sequence[Sequence[int | None]]
    names: NotRequired[Mapping[str, list[bool]]]


def test_a_dictionary_becomes_an_interface_after_those_that_it_needs():
    written = declare.interfaces([Tree])
    assert list(written) == ["Leaf", "Tree"]
    assert written["Leaf"] == "export interface Leaf {\n  text: string;\n}\n"
    assert written["Tree"] == (
        'export interface Tree {\n  draw: "a" | "b";\n  leaf: Leaf;\n  size: [number, number];\n'
        "  rows: (number | null)[][];\n  names?: Record<string, boolean[]>;\n}\n"
    )


def test_a_type_without_a_form_is_named():
    class Odd(TypedDict):
        odd: bytes

    with pytest.raises(TypeError, match="bytes"):
        declare.interfaces([Odd])


def test_each_kind_of_feed_has_a_script():
    draws = {get_args(get_type_hints(feed)["draw"])[0] for feed in get_args(wire.Feed)}
    view = (scripts() / "linked_view" / "view.js").read_text("utf-8")
    (classes,) = re.findall(r"const CLASSES = \{(.*?)\};", view, re.S)
    # the strips stand over the cells, and the ranking is read by the wall
    assert draws == {*re.findall(r"(\w+):", classes), "strips", "ranking"}
