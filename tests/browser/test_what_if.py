"""Changes in Chromium: clicks that make them, links and files that carry them, and two visitors."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from urllib.parse import urlencode

import pytest

from explorer.lenses import compare_runs
from transformer import interventions as do
from transformer import load_trace, load_translator

from .conftest import PATIENCE, Visitor
from .test_export import download, popover

TEXT = "one two three four"
THREE = (do.hide(1), do.scale("cross", 0, 1, 3.0), do.temperature("encoder", 0, 0, 2.0))
HERE = {"model": "random", "text": TEXT}


def link(*changes: do.Intervention, **params: str) -> dict[str, str]:
    return {**HERE, "changes": do.write_text(changes), **params}


def at_what_if(visitor: Visitor, **params: str) -> None:
    """Opens the page What if and waits for its last picture."""
    visitor.page.goto(f"{visitor.base}/what_if?{urlencode(params)}")
    visitor.page.get_by_text("What am I seeing?").wait_for(timeout=PATIENCE)


def until_active(visitor: Visitor, *changes: do.Intervention) -> None:
    """Waits until the address names these changes."""
    visitor.until(
        "text => (new URLSearchParams(location.search).get('changes') || '') === text",
        do.write_text(changes),
    )


def badge(visitor: Visitor) -> str:
    return str(visitor.page.text_content("[data-plot=cross]"))


def test_a_link_with_three_changes_shows_counts_and_exports_them(visitor: Visitor, tmp_path: Path) -> None:
    visitor.open("cross_attention", **link(*THREE))
    visitor.page.get_by_text("3 changes are active").wait_for(timeout=PATIENCE)
    for text in ("source token 2, “two”, is hidden", "head 2 times 3", "head 1 with temperature 2"):
        visitor.page.get_by_role("button", name=text).wait_for(timeout=PATIENCE)
    assert "✓ verified, with 3 changes" in badge(visitor)
    hover = visitor.hover_text("cross", 1, 0)
    npz = download(visitor, popover(visitor), "NPZ", tmp_path)
    assert load_trace(npz).interventions == THREE
    visitor.page.goto(f"{visitor.base}/open_file")
    visitor.page.set_input_files("input[type=file]", npz)
    visitor.page.get_by_role("link", name="Show it").click(timeout=PATIENCE)
    visitor.ready()
    assert "imported file, consistent, with 3 changes" in badge(visitor)
    assert visitor.hover_text("cross", 1, 0) == hover


def test_two_visitors_with_different_changes_never_see_each_other_s(
    newcomer: Callable[..., Visitor],
) -> None:
    one, other, neither = newcomer(), newcomer(), newcomer()
    for visitor, changes in ((one, THREE[:1]), (other, THREE[1:])):
        visitor.open("cross_attention", **link(*changes, cross="1.2"))
    neither.open("cross_attention", **HERE, cross="1.2")
    cells = [visitor.hover_text("cross", 0, 1) for visitor in (one, other, neither)]
    assert len(set(cells)) == 3
    for visitor, cell in zip((one, other, neither), cells, strict=True):
        visitor.page.reload()
        visitor.ready()
        assert visitor.hover_text("cross", 0, 1) == cell
    assert "with 1 change" in badge(one)
    assert "with 2 changes" in badge(other)
    assert "with" not in re.search(r"✓ verified[^·]*", badge(neither)).group()


def test_a_word_a_head_and_a_cell_are_read_under_the_pointer_and_changed_by_clicks(visitor: Visitor) -> None:
    at_what_if(visitor, **link(THREE[1], kind="cross", cross="1.1"))
    cell_tells(visitor)
    click_word(visitor, "two")
    until_active(visitor, THREE[1], do.hide(1))
    click_tile(visitor, 2, 3)
    visitor.page.get_by_role("button", name="Switch head 4 of layer 3 off").click(timeout=PATIENCE)
    off = do.ablate("cross", 2, 3)
    until_active(visitor, THREE[1], do.hide(1), off)
    click_tile(visitor, 0, 0)
    visitor.page.get_by_role("button", name="Switch head 1 of layer 1 off").wait_for(timeout=PATIENCE)
    click_cell(visitor, 1, 2)
    visitor.until("new URLSearchParams(location.search).get('source') === '3'")
    visitor.page.get_by_role("button", name="Move this row's weight here").click(timeout=PATIENCE)
    until_active(visitor, THREE[1], do.hide(1), off, do.set_row("cross", 0, 0, 1, {2: 1.0}))
    click_word(visitor, "two")
    until_active(visitor, THREE[1], off, do.set_row("cross", 0, 0, 1, {2: 1.0}))


def cell_tells(visitor: Visitor) -> None:
    """Looks at a cell of the map of differences: it says both weights and their difference."""
    place_of_cell(visitor, 1, 2, visitor.page.mouse.move)
    place = ".hoverlayer .hovertext"
    visitor.page.wait_for_selector(place, timeout=PATIENCE)
    told = visitor.page.eval_on_selector(place, "e => e.textContent")
    assert re.search(r"changed [\d.]+ · as it is [\d.]+ · difference [+−]?[\d.]+", told), told


def click_word(visitor: Visitor, word: str) -> None:
    """Clicks a word of the source."""
    rested(visitor)
    words = visitor.page.locator("[data-testid=stButtonGroup] button")
    words.filter(has_text=re.compile(f"^{word}$")).click(timeout=PATIENCE)


def click_tile(visitor: Visitor, layer: int, head: int) -> None:
    """Clicks a head among the tiles of three layers with four heads."""
    _at(visitor, "H1", (layer + 0.5) / 3, (head + 0.5) / 4, visitor.page.mouse.click)


def click_cell(visitor: Visitor, row: int, column: int) -> None:
    """Clicks a cell of the map of differences."""
    place_of_cell(visitor, row, column, visitor.page.mouse.click)


def place_of_cell(visitor: Visitor, row: int, column: int, act: Callable[[float, float], None]) -> None:
    """Moves or clicks where the map of differences has a cell."""
    rested(visitor)
    rows, columns = visitor.read(
        """() => {
          const plots = [...document.querySelectorAll('.js-plotly-plot')];
          const { x, y } = plots.find(each => each.textContent.includes('queries')).data.at(-1);
          return [Math.max(...y) + 1, Math.max(...x) + 1];
        }"""
    )
    _at(visitor, "queries", (row + 0.5) / rows, (column + 0.5) / columns, act)


def _at(visitor: Visitor, text: str, down: float, across: float, act: Callable[[float, float], None]) -> None:
    """Does something at a place of the chart that holds a text, by shares of its height and width."""
    rested(visitor)
    x, y = visitor.read(
        """([text, down, across]) => {
          const plots = [...document.querySelectorAll('.js-plotly-plot')];
          const area = plots.find(each => each.textContent.includes(text)).querySelector('.nsewdrag');
          area.scrollIntoView({ block: 'center' });
          const box = area.getBoundingClientRect();
          return [box.left + across * box.width, box.top + down * box.height];
        }""",
        [text, down, across],
    )
    act(x, y)


def rested(visitor: Visitor) -> None:
    """Waits until the script has ended and both charts of heads are drawn."""
    visitor.until("document.querySelector('.stApp').dataset.testScriptState === 'notRunning'")
    visitor.until(
        """['H1', 'queries'].every(text => [...document.querySelectorAll('.js-plotly-plot')].some(
          plot => plot.textContent.includes(text) && plot.querySelector('.nsewdrag')))"""
    )


def test_the_numbers_arrive_as_csv_with_their_caption(visitor: Visitor, models: Path, tmp_path: Path) -> None:
    at_what_if(visitor, **link(THREE[1], cross="1.2"))
    model = load_translator(models / "random")
    base = model.translate(TEXT)
    found = compare_runs(base, model.force(TEXT, base.target_ids, interventions=[THREE[1]]))
    caption, provenance, steps = table(visitor, "what-if-delta", tmp_path)
    assert caption.startswith("# Δ log p of each token of the unchanged translation")
    assert do.write_text(THREE[1:2]) in provenance
    assert [row["token"] for row in steps] == list(base.target_tokens)
    assert [float(row["Δ log p, nats"]) for row in steps] == pytest.approx(found.delta_log_p, abs=1e-5)
    *_, cells = table(visitor, "what-if-map", tmp_path)
    shown = [float(row["difference"]) for row in cells]
    assert shown == pytest.approx(found.map("cross", 0, 1).ravel(), abs=1e-5)


def table(visitor: Visitor, name: str, path: Path) -> tuple[str, str, list[dict[str, str]]]:
    """Saves the numbers of a figure: caption, provenance and rows."""
    visitor.page.locator(f".st-key-export-{name} button").first.click(timeout=PATIENCE)
    box = visitor.page.locator("[data-testid=stPopoverBody]").filter(has_text="CSV")
    box.wait_for(timeout=PATIENCE)
    file = io.StringIO(download(visitor, box, "CSV", path).read_text("utf-8-sig"))
    visitor.page.keyboard.press("Escape")
    (caption,), (provenance,) = islice(csv.reader(file), 2)
    return caption, provenance, list(csv.DictReader(file))
