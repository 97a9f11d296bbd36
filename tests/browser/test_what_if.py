"""Changes in Chromium: clicks that make them, files that carry them, and two visitors."""

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
from transformer import load_translator

from .conftest import PATIENCE, Visitor
from .test_export import download

THREE = (do.hide(1), do.scale("cross", 0, 1, 3.0), do.temperature("encoder", 0, 0, 2.0))
HERE = {"model": "random", "text": "one two three four"}
RESTED = """['H1'].every(text => [...document.querySelectorAll('.js-plotly-plot')].some(
  plot => plot.textContent.includes(text) && plot.querySelector('.nsewdrag')))
  && document.querySelector('.stApp').dataset.testScriptState === 'notRunning'"""
PLACE = """([text, row, column, size]) => {
  const plots = [...document.querySelectorAll('.js-plotly-plot')];
  const plot = plots.find(each => each.textContent.includes(text));
  const { x, y } = plot.data.at(-1), area = plot.querySelector('.nsewdrag');
  const [rows, columns] = size ?? [Math.max(...y) + 1, Math.max(...x) + 1];
  area.scrollIntoView({ block: 'center' });
  const box = area.getBoundingClientRect();
  return [box.left + (column + .5) / columns * box.width, box.top + (row + .5) / rows * box.height];
}"""
"""Where the chart that holds a text has a cell; its last trace knows the cells, if none are
counted."""


def link(*changes: do.Intervention, **params: str) -> dict[str, str]:
    return {**HERE, "changes": do.write_text(changes), **params}


def at_what_if(visitor: Visitor, **params: str) -> None:
    """Opens the page What if and waits for its last picture."""
    visitor.page.goto(f"{visitor.base}/what_if?{urlencode(params)}")
    visitor.page.get_by_text("What am I seeing?").wait_for(timeout=PATIENCE)


def until_active(visitor: Visitor, *changes: do.Intervention) -> None:
    """Waits until the address names these changes."""
    named = "text => (new URLSearchParams(location.search).get('changes') || '') === text"
    visitor.until(named, do.write_text(changes))


def badge(visitor: Visitor) -> str:
    visitor.proved()
    return str(visitor.page.text_content("[data-plot=cross]"))


@pytest.mark.nightly
def test_two_visitors_with_different_changes_never_see_each_other_s(
    newcomer: Callable[..., Visitor],
) -> None:
    visitors = one, other, neither = newcomer(), newcomer(), newcomer()
    for visitor, params in zip(visitors, (link(*THREE[:1]), link(*THREE[1:]), HERE), strict=True):
        visitor.open("cross_attention", **params, cross="1.2")
    cells = [visitor.hover_text("cross", 0, 1) for visitor in visitors]
    assert len(set(cells)) == 3
    for visitor, cell in zip(visitors, cells, strict=True):
        visitor.page.reload()
        visitor.ready()
        assert visitor.hover_text("cross", 0, 1) == cell
    assert "with 1 change" in badge(one)
    assert "with 2 changes" in badge(other)
    assert "with" not in re.search(r"✓ verified[^·]*", badge(neither)).group()


def test_a_word_and_a_head_are_changed_by_clicks(visitor: Visitor) -> None:
    page, mouse = visitor.page, visitor.page.mouse

    def word(text: str) -> None:
        visitor.until(RESTED)
        words = page.locator("[data-testid=stButtonGroup] button")
        words.filter(has_text=re.compile(f"^{text}$")).click(timeout=PATIENCE)

    def at(act: Callable[..., None], text: str, row: int, column: int, *size: int) -> None:
        visitor.until(RESTED)
        act(*visitor.read(PLACE, [text, row, column, size or None]))

    def press(name: str) -> None:
        page.get_by_role("button", name=name).click(timeout=PATIENCE)

    at_what_if(visitor, **link(THREE[1], kind="cross", cross="1.1"))
    word("two")
    until_active(visitor, THREE[1], do.hide(1))
    at(mouse.click, "H1", 2, 3, 3, 4)
    press("Switch head 4 of layer 3 off")
    off = do.ablate("cross", 2, 3)
    until_active(visitor, THREE[1], do.hide(1), off)
    at(mouse.click, "H1", 0, 0, 3, 4)
    page.get_by_role("button", name="Switch head 1 of layer 1 off").wait_for(timeout=PATIENCE)
    word("two")
    until_active(visitor, THREE[1], off)


def test_the_numbers_arrive_as_csv_with_their_caption(
    visitor: Visitor, models: Path, tmp_path: Path
) -> None:
    def table(picture: str) -> tuple[str, str, list[dict[str, str]]]:
        """Caption, provenance and rows of the saved numbers of a figure."""
        visitor.page.locator(".st-key-export-page button").first.click(timeout=PATIENCE)
        visitor.page.get_by_role("combobox", name="Picture").click(timeout=PATIENCE)
        visitor.page.get_by_role("option").filter(has_text=picture).click(timeout=PATIENCE)
        visitor.rested()
        box = visitor.page.locator("[data-testid=stPopoverBody]").filter(has_text="CSV")
        box.wait_for(timeout=PATIENCE)
        file = io.StringIO(download(visitor, box, "CSV", tmp_path).read_text("utf-8-sig"))
        visitor.page.keyboard.press("Escape")
        (caption,), (provenance,) = islice(csv.reader(file), 2)
        return caption, provenance, list(csv.DictReader(file))

    at_what_if(visitor, **link(THREE[1], cross="1.2"))
    model = load_translator(models / "random")
    base = model.translate(HERE["text"])
    both = compare_runs(base, model.force(HERE["text"], base.target_ids, interventions=[THREE[1]]))
    caption, provenance, steps = table("How probable the unchanged")
    assert caption.startswith("# Δ log p of each token of the unchanged output")
    assert do.write_text(THREE[1:2]) in provenance
    assert [row["token"] for row in steps] == list(base.target_tokens)
    assert [float(row["Δ log p, nats"]) for row in steps] == pytest.approx(
        both.delta_log_p, abs=1e-5
    )
