"""The pages of the three kinds in Chromium."""

from __future__ import annotations

from closed_form import CASES

from .conftest import Visitor, box_of, case_link


def test_the_encoder_page_walks_over_source_tokens(visitor: Visitor) -> None:
    visitor.open("encoder_self_attention", **case_link("copy", source="2"))
    assert visitor.count() == f"source token 2 of {len(CASES['copy'].source_tokens)}"
    visitor.page.focus(".lv")
    visitor.page.keyboard.press("ArrowRight")
    visitor.until("location.search.includes('source=3')")
    assert "three" in visitor.page.inner_text(".lv-sentence")
    click_on_a_tile_opens_its_head(visitor, "encoder")


def test_the_row_of_the_cursor_follows_the_step_in_cross_attention(visitor: Visitor) -> None:
    visitor.open("cross_attention", **case_link("copy", step="1"))
    visitor.page.focus(".lv")
    visitor.page.keyboard.press("ArrowRight")
    visitor.until(
        "document.querySelector('[data-plot=row] .gtitle')?.textContent.includes('predicts zwei: Σ = 1.00')"
    )
    click_on_a_tile_opens_its_head(visitor, "cross")


def test_decoding_fades_later_rows_and_training_does_not(visitor: Visitor) -> None:
    visitor.open("decoder_self_attention", **case_link("copy", step="2"))
    assert visitor.page.locator("[data-plot=decoder] .lv-fade").is_visible()
    visitor.page.get_by_role("radio", name="as trained").click()
    visitor.until("document.querySelector('[data-plot=decoder] .lv-fade')?.hidden")
    visitor.until("location.search.includes('view=trained')")
    assert "teacher forcing" in visitor.page.inner_text(".stMain")
    visitor.ready()
    click_on_a_tile_opens_its_head(visitor, "decoder")


def click_on_a_tile_opens_its_head(visitor: Visitor, kind: str) -> None:
    """Clicks the second head among the tiles."""
    visitor.page.mouse.click(*_tile(visitor, 2, 0.5))
    visitor.until(f"document.querySelector('[data-plot={kind}] .lv-title')?.textContent.includes('L1 H2')")
    visitor.until(f"location.search.includes('{kind}=1.2')")
    visitor.ready()


def _tile(visitor: Visitor, heads: int, layer: float) -> tuple[float, float]:
    """The middle of the last tile of a layer."""
    box = box_of(visitor.page.locator("[data-plot=overview] .nsewdrag"))
    return box["x"] + box["width"] * (1 - 0.5 / heads), box["y"] + box["height"] * layer


def test_every_control_is_reachable_by_tab_with_a_visible_focus(visitor: Visitor) -> None:
    visitor.open("cross_attention", **case_link("copy"))
    visitor.page.focus(".lv")
    reached = []
    for _ in range(6):
        visitor.page.keyboard.press("Tab")
        reached.append(visitor.page.evaluate("document.activeElement.getAttribute('aria-label')"))
    assert reached[:4] == ["One back", "Cursor", "One forward", "Play"]
    visitor.page.get_by_label("One back").focus()
    visitor.page.keyboard.press("Shift+Tab")
    visitor.page.keyboard.press("Tab")
    assert visitor.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
