"""`python -m lab blind`: the judged lists are counted as they stand, and a broken line is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.studies.blind import LISTS, _counted, _share
from transformer.text.pairs import DataError

FOLDER = Path(__file__).resolve().parents[2] / "blind"


@pytest.mark.parametrize("name", LISTS)
def test_every_line_is_counted_once_for_each_model(name: str):
    lines = (FOLDER / name).read_text("utf-8").splitlines()
    for kinds in _counted(FOLDER / name, LISTS[name]).values():
        assert sum(count for _, count in kinds.values()) == len(lines)
        assert all(0 <= good <= count for good, count in kinds.values())


def test_a_broken_line_is_named(tmp_path: Path):
    (tmp_path / "list.tsv").write_text("kind\tone\ttwo\tyes\n", "utf-8")
    with pytest.raises(DataError, match="line 1: six columns"):
        _counted(tmp_path / "list.tsv", ("a", "b"))


def test_the_interval_is_wilson_s():
    """Ten of ten: Wilson's lower end is n / (n + z²)."""
    value, low, high = _share(10, 10)
    assert value == pytest.approx(100)
    assert low == pytest.approx(100 * 10 / (10 + 1.96**2))
    assert high == pytest.approx(100)
