"""Word alignment in Chromium: links are drawn by clicking cells."""

from __future__ import annotations

from .conftest import PATIENCE, Visitor, box_of, playwright_api

CELLS = ".js-plotly-plot .nsewdrag"


def click(visitor: Visitor, row: int, column: int, shape: tuple[int, int], name: str) -> None:
    """Clicks a cell of the only map (rows, columns), once the pointer is told which one it is on."""
    visitor.page.wait_for_selector(CELLS, timeout=PATIENCE)
    hover = visitor.page.locator(".hoverlayer .hovertext").filter(has_text=name)
    for _ in range(100):
        box = box_of(visitor.page.locator(CELLS).first)
        x, y = (column + 0.5) / shape[1] * box["width"], (row + 0.5) / shape[0] * box["height"]
        visitor.page.mouse.move(box["x"] + x - 3, box["y"] + y)
        visitor.page.mouse.move(box["x"] + x, box["y"] + y)
        try:
            hover.wait_for(timeout=1_000)
        except playwright_api.TimeoutError:
            continue
        visitor.page.mouse.click(box["x"] + x, box["y"] + y)
        return
    raise AssertionError(f"The pointer never was on {name}.")


def test_a_click_draws_a_link_and_a_second_one_takes_it_back(visitor: Visitor) -> None:
    visitor.page.goto(
        f"{visitor.base}/cross_attention?view=alignment&model=copy&text=one+two+three+four+stop"
    )
    click(visitor, 1, 2, (4, 5), "zwei – three")
    visitor.until("location.search.includes('pairs=3-2')")
    visitor.until("document.querySelectorAll('.js-plotly-plot .shapelayer path').length === 1")
    click(visitor, 0, 0, (4, 5), "eins – one")
    visitor.until("decodeURIComponent(location.search).includes('pairs=1-1,3-2')")
    visitor.until("document.querySelectorAll('.js-plotly-plot .shapelayer path').length === 2")
    click(visitor, 1, 2, (4, 5), "zwei – three")
    visitor.until("location.search.includes('pairs=1-1&') || location.search.endsWith('pairs=1-1')")
    visitor.page.go_back()
    visitor.until("document.querySelectorAll('.js-plotly-plot .shapelayer path').length === 2")


def test_a_gold_pair_of_the_sample_opens_with_its_links(visitor: Visitor) -> None:
    visitor.page.goto(f"{visitor.base}/cross_attention?view=alignment&model=random")
    visitor.page.get_by_role("button", name="Open links made by hand").click()
    visitor.page.get_by_label("The bundled sample").click()
    visitor.page.get_by_role("option").nth(1).click()
    visitor.until("location.search.includes('gold=sample-1')")
    visitor.until("document.querySelectorAll('.js-plotly-plot .shapelayer path').length > 5")
    visitor.page.wait_for_selector("[data-testid=stDataFrame]", timeout=PATIENCE)
