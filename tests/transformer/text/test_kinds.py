"""A value is of its kind, or is named with what it must be."""

import json
import math
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from transformer.sampling import Sampling
from transformer.text.kinds import (
    PART,
    above,
    at_least,
    check_fields,
    declared,
    listed,
    number,
    one_of,
    whole,
)

KINDS = {
    "a whole number from 1 to 1,000": (whole(1, 1_000), (1, 1_000), (0, 1_001, 1.0, True, "1", None)),
    "a whole number from 0": (whole(0, most=9), (0, 9), (-1, 10, math.inf)),
    "a number from -1 to 2.5": (number(-1, 2.5), (-1, 2.5, np.float32(2)), (2.6, math.nan, "1", True)),
    "at least 1": (at_least(1), (1, 1.5, np.int64(3)), (0.99, math.inf, math.nan, None)),
    "above 0": (above(0), (1e-9, math.inf), (0, -1, math.nan)),
    "above 0 and at most 1": (above(0, 1), (1,), (0, 1.01)),
    "a number from 0 to below 1": (PART, (0, 0.999), (1, -0.1, "0")),
    "a, b or c": (one_of(*"abc"), ("a", "c"), ("", "d", ["a"], None)),
    "only": (one_of("only"), ("only",), ("other",)),
}


@pytest.mark.parametrize("said", KINDS)
def test_a_value_is_of_its_kind_or_is_named(said: str):
    kind, good, bad = KINDS[said]
    assert kind.said == said
    assert [kind.check("x", value) for value in good] == list(good)
    for value in bad:
        with pytest.raises(ValueError, match="must be") as caught:
            kind.check("x", value)
        assert str(caught.value) == f"x is {value!r}; it must be {said}."


@dataclass(frozen=True)
class Sizes:
    """Fields of every sort."""

    width: Annotated[int, whole(1, 9), "the width"] = 1
    most: Annotated[int, at_least(2)] | None = None
    order: Literal["pre", "post"] = "pre"
    tied: bool = True
    name: str = ""
    free: int = 0
    parts: tuple[Annotated[str, one_of(*"ab")], ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)


@pytest.mark.parametrize(
    "wrong",
    [{"width": None}, {"most": 1}, {"order": "no"}, {"tied": 1}, {"name": 3}, {"parts": "ab"}],
    ids=str,
)
def test_a_field_is_checked_by_what_stands_beside_its_type(wrong: dict[str, Any]):
    assert Sizes(most=2, order="post", free=-3, parts=("a", "b"))
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=rf"^{name} is {value!r}; it must be .*\.$"):
        Sizes(**wrong)
    with pytest.raises(ValueError, match=r"^parts is 'c'; it must be a or b"):
        Sizes(parts=("a", "c"))


def test_a_hint_says_type_kinds_and_notes():
    inner = Annotated[int, "N"]
    found = declared(Annotated[tuple[inner, ...] | None, whole(1), "help"])
    assert (found.type, found.notes, found.optional, found.many) == (int, ("N", "help"), True, True)
    assert [kind.said for kind in found.kinds] == ["a whole number from 1"]


def test_parts_are_listed_as_in_a_sentence():
    assert [listed("abc"[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert listed("abcde", "or", most=3) == "a, b, c or 2 more"
    assert listed("abc", most=3) == "a, b and c"


def test_numbers_of_numpy_become_plain_ones():
    found = Sampling(np.float32(0.5), np.uint8(3), np.float64(0.25), np.int64(8))
    assert json.loads(json.dumps(asdict(found))) == asdict(Sampling(0.5, 3, 0.25, 8))
