"""Words, lines, strongest keys, scales, windows and tiles without a browser: what the browser is fed with."""

import json
from pathlib import Path

import numpy as np
import pytest
from app_pages import array, feeds, run, view
from closed_form import CASES, KNOWN

from explorer.app.maps import display

PAGES = {
    "encoder": "pages/encoder_self_attention.py",
    "decoder": "pages/decoder_self_attention.py",
    "cross": "pages/cross_attention.py",
}
LONG = " ".join(["one two three four five six eight nine ten"] * 9)


def weights(feed: dict[str, object]) -> np.ndarray:
    """The numbers of lines and strongest keys, as the browser reads them."""
    return array(feed["values"])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", PAGES)
def test_known_cells_are_drawn_in_every_way(kind: str, name: str):
    case = CASES[name]
    link = {"model": name, "text": case.sentence, kind: "1.2", "words": "yes"}
    lines = feeds(run(PAGES[kind], show="lines", links="weight-99", **link))["lines"]
    known = {(row, key) for row, key in enumerate(case.keys(kind, 1))}
    assert {(row, key) for row, key, *_ in lines["links"]} == known
    strongest = weights(feeds(run(PAGES[kind], show="strongest", **link))["strongest"])
    plain = feeds(run(PAGES[kind], **link))
    matrix = json.loads(str(plain[kind]["figure"]))["data"][0]
    drawn = array(matrix["customdata"])
    assert drawn.shape[2] == 1
    for row, key in known:
        assert strongest[row, key] > KNOWN
        assert drawn[row, key, 0] > KNOWN
    tiles = array(json.loads(str(plain["overview"]["figure"]))["data"][0]["z"])
    first, second = case.weights(kind, 0), case.weights(kind, 1)
    columns = first.shape[1]
    assert np.array_equal(tiles[:, :columns] > 250, first == 1)
    assert np.array_equal(tiles[:, -columns:] > 250, second == 1)


@pytest.mark.parametrize("show", display.SHOWS)
def test_smaller_windows_come_with_the_whole_matrix(show: str):
    at = run(PAGES["cross"], model="random", text=LONG, window="16", step="20", source="40", show=show)
    carried = feeds(at)
    focus = carried["cross" if show == "matrix" else show]
    assert max(map(len, focus["spans"].values())) <= 16
    for side, position in (("rows", 19), ("columns", 39)):
        assert any(start <= position < stop for start, stop in focus["spans"][side])
    assert "maximum over" in str(carried["whole"]["caption"])
    assert "whole" in view(at)["plots"]


@pytest.mark.parametrize("statistic", ["entropy", "mean_distance", "first_mass", "contribution", "aer"])
def test_tiles_take_the_colour_of_a_statistic(statistic: str):
    at = run(PAGES["cross"], model="random", color=statistic, order=statistic)
    carried = feeds(at)["overview"]
    assert not at.exception
    assert carried["legend"]["marks"]
    layout = json.loads(str(carried["figure"]))["layout"]
    written = [float(note["text"].split(" · ")[1]) for note in layout["annotations"]]
    rows = [written[i : i + 4] for i in range(0, len(written), 4)]
    falling = statistic in {"entropy", "mean_distance", "aer"}
    assert all(row == sorted(row, reverse=not falling) for row in rows)
    assert sum("fillcolor" in shape for shape in layout["shapes"]) == len(written)


def test_the_table_has_the_numbers_and_masked_cells_are_empty(app_models: Path):
    from explorer.lenses.words.reading import Reading, read_view
    from transformer import load_translator

    head = load_translator(app_models / "copy").translate(CASES["copy"].sentence).head("decoder", 0, 0)
    table = display.weights(read_view(head, Reading()))
    assert table.isna().to_numpy().sum() == (~head.mask).sum()
    assert table.iloc[3, 2] > KNOWN
    assert table.columns.is_unique
    assert list(table.columns[:2]) == ["1 <s>", "2 eins"]
