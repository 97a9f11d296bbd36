"""`storage.typed`: values of JSON become typed values, or are refused with one sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from properties import PROPERTY, as_file, damaged

from transformer.storage.files import CheckpointError
from transformer.storage.typed import read_typed, typed


@dataclass(frozen=True)
class Part:
    """Part of a whole."""

    place: tuple[int, int]
    share: float | None


@dataclass(frozen=True)
class Whole:
    """Something with everything that a file holds."""

    name: str
    sizes: tuple[float, ...]
    parts: Mapping[str, tuple[Part, ...]]
    good: bool
    most: Part | None = None


WHOLE = Whole("a", (1.5, 2.0), {"b": (Part((0, 1), 0.5), Part((2, 3), None))}, True, Part((4, 5), 1.0))


def test_a_file_gives_back_what_was_written_whatever_else_it_holds():
    values = as_file(asdict(WHOLE) | {"date": "2026-01-01"})
    assert typed(Whole, values) == WHOLE
    assert typed(Whole, {name: value for name, value in values.items() if name != "most"}).most is None
    sizes = typed(Whole, values | {"sizes": [1]}).sizes
    assert (sizes, type(sizes[0])) == ((1,), int)


@PROPERTY
@given(damaged(as_file(asdict(WHOLE))))
def test_a_damaged_file_is_refused_or_gives_back_what_it_says(values: Any):
    with suppress(ValueError):
        found = typed(Whole, values)
        assert typed(Whole, as_file(asdict(found))) == found


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ({"sizes": [1.0, True]}, "True in sizes of the file is no float"),
        ({"sizes": [float("nan")]}, "nan in sizes"),
        ({"parts": {"b": [{"share": 1.0}]}}, "There is no place in b of parts of the file"),
        ({"parts": {"b": [{"place": [0, 1, 2], "share": 1.0}]}}, "shorter|longer"),
        ({"parts": {"b": [{"place": [0, 1.5], "share": 1.0}]}}, "1.5 in place of b of parts"),
    ],
    ids=str,
)
def test_what_is_of_another_type_is_refused(damage: dict[str, object], reason: str, tmp_path: Path):
    values = as_file(asdict(WHOLE)) | damage
    with pytest.raises(ValueError, match=reason):
        typed(Whole, values)
    (tmp_path / "whole.json").write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(
        CheckpointError,
        match=r"whole\.json is (damaged; remove it|not valid JSON; it is damaged)",
    ):
        read_typed(tmp_path / "whole.json", partial(typed, Whole))
