"""Tables as CSV: what goes in comes out, and no cell is a formula."""

from __future__ import annotations

import csv
import io

from explorer.app.server import cells


def test_a_carriage_return_stays_in_its_cell():
    rows = [["token", "weight"], ["a\rb", 0.5], ["c\r\nd", 0.25], ['say "x",\n', 1]]
    text = cells.written(rows)
    assert text[0] == "\ufeff"
    assert list(csv.reader(io.StringIO(text[1:], newline=""))) == [list(map(str, row)) for row in rows]


def test_a_text_that_would_be_a_formula_begins_with_an_apostrophe():
    rows = [["=1+1", "-2", -2, "a=b", "＝1＋1", "＠a", "－2", "＋2"]]
    assert cells.written(rows) == "\ufeff'=1+1,'-2,-2,a=b,'＝1＋1,'＠a,'－2,'＋2\n"
