"""The numbers of a figure as CSV."""

from __future__ import annotations

import csv
import io

import plotly.graph_objects as go
import pytest

from explorer.app.address.state import State
from explorer.app.controls.export import Picture


def test_the_csv_file_begins_with_caption_and_provenance_and_holds_the_numbers():
    table = [("token", "Δ log p"), ("a, “b”\n", -0.25), ("#", 0.5)]
    picture = Picture(go.Figure, "Δ log p of\neach token", table=lambda: table)
    lines = picture.csv(State(text="one two", model="random")).split("\n", 2)
    assert lines[0] == "\ufeff# Δ log p of each token"
    assert lines[1].startswith("# Attention explorer")
    assert "text=one+two&model=random" in lines[1]
    rows = list(csv.reader(lines[2].splitlines(keepends=True)))
    assert rows == [["token", "Δ log p"], ["a, “b”\n", "-0.25"], ["#", "0.5"]]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "＝", "\t", "\r"])
def test_no_cell_and_no_caption_is_a_formula(start):
    formula = f'{start}HYPERLINK("http://a.test","b")'
    picture = Picture(go.Figure, f'“x",{formula}', table=lambda: [(formula, -1.5)])
    written = picture.csv(State(text="one", model="random")).removeprefix("\ufeff")
    caption, _, row = csv.reader(io.StringIO(written, newline=""))
    assert len(caption) == 1
    assert caption[0].startswith("# ")
    assert row == [f"'{formula}", "-1.5"]
