"""A model on the Hub in a real browser: looked up, refused, fetched, opened."""

from __future__ import annotations

import shutil
from pathlib import Path

from closed_form import CASES
from hub_server import HubServer

from lenses.words.familiarity import WEIGHTED, DoubtMeasure, as_json
from transformer.storage.files import write_json

from .conftest import PATIENCE, Visitor


def test_a_model_is_looked_up_fetched_and_opened(visitor: Visitor, hub: HubServer):
    page, name = visitor.page, "user/reverse"
    visitor.open(model="copy", text=CASES["reverse"].sentence)
    page.get_by_text("Models on the Hub").click()
    field = page.get_by_role("textbox", name="Name of a model on the Hub")
    field.fill("user/nothing")
    field.press("Enter")
    page.get_by_text("There is no model user/nothing on the Hub").wait_for(timeout=PATIENCE)
    hub.faults["api"] = "error"
    field.fill(name)
    field.press("Enter")
    again = page.get_by_role("button", name="Try again")
    page.get_by_text("answers with an error (503)").wait_for(timeout=PATIENCE)
    grey = page.get_by_role("textbox", name="Name of a model on the Hub", disabled=True)
    grey.wait_for(timeout=PATIENCE)
    assert grey.input_value() == name
    hub.faults.clear()
    again.click()
    fetch = page.get_by_role("button", name="Download it")
    fetch.wait_for(timeout=PATIENCE)
    assert "of memory needed" in page.inner_text(".stPopoverBody, [data-testid=stPopoverBody]")
    assert hub.asked("GET", "/storage/") == 0
    fetch.click()
    visitor.until("name => new URLSearchParams(location.search).get('model') === name", name)
    visitor.until(
        "name => [...document.querySelectorAll('.lv figcaption, .lv-caption, .lv')]"
        ".some(each => each.textContent.includes(name + '@'))",
        name,
    )
    visitor.ready()
    assert len(visitor.chips("target")) > 2


def test_a_click_on_the_larger_model_asks_before_it_is_downloaded(visitor: Visitor, models: Path):
    usual = dict.fromkeys(WEIGHTED, (-1.0, 2.0))
    strange = DoubtMeasure((0.0, 1.0, 0.0), 0.0, 0.0, usual, (0.0, 0.0, 0.0), {})
    directory = models / "strange"
    shutil.copytree(models / "copy", directory)
    write_json(
        directory / "familiarity.json",
        as_json(strange) | {"instead": "user/larger", "instead_bytes": 298_000_000},
    )
    try:
        visitor.page.set_viewport_size({"width": 390, "height": 844})
        visitor.open(model="strange", text=CASES["copy"].sentence)
        visitor.page.locator(".st-key-doubt [data-testid=stPopoverButton]").click(timeout=PATIENCE)
        visitor.page.get_by_role("button", name="Download and open").wait_for(timeout=PATIENCE)
    finally:
        shutil.rmtree(directory)
