"""Heads over sentences in Chromium."""

from __future__ import annotations

from .conftest import PATIENCE, Visitor, box_of


def open_heads(visitor: Visitor, **params: str) -> None:
    """Opens the page with its results, which the server keeps once a visitor has asked for them."""
    visitor.page.goto(
        f"{visitor.base}/heads?" + "&".join(f"{name}={value}" for name, value in params.items())
    )
    ask = visitor.page.get_by_role("button", name="sentences here")
    roles = visitor.page.get_by_text("The roles").first
    ask.or_(roles).first.wait_for(timeout=PATIENCE)
    if ask.is_visible():
        ask.click()
    roles.wait_for(timeout=PATIENCE)
    visitor.until("document.querySelectorAll('.stPlotlyChart .nsewdrag').length === 1")


def test_a_click_chooses_a_head_and_an_example_opens_its_view(visitor: Visitor) -> None:
    open_heads(visitor, model="copy", kind="encoder", encoder="1.1", facet="sentences")
    assert visitor.page.locator("h5", has_text="L1 H1 · next token").count() == 1
    box = box_of(visitor.page.locator(".stPlotlyChart .nsewdrag"))
    visitor.page.mouse.click(box["x"] + 0.75 * box["width"], box["y"] + box["height"] / 2)
    visitor.page.wait_for_selector("h5:has-text('L1 H2 · previous token')", timeout=PATIENCE)
    visitor.has(encoder="1.2")
    # The heading is drawn before the links below it have heard of the choice.
    visitor.page.locator(".stMain [data-testid=stPageLink] a[href*='encoder=1.2']").first.click()
    visitor.ready()
    assert "encoder_self_attention" in visitor.page.url
    visitor.has(encoder="1.2")
    visitor.page.go_back()
    visitor.page.wait_for_selector("h5:has-text('L1 H2 · previous token')", timeout=PATIENCE)


def test_a_phone_scrolls_no_wider_than_its_screen(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    open_heads(visitor, model="copy", kind="decoder")
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390
