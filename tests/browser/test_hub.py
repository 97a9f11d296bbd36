"""A model on the Hub in a real browser: looked up, refused, fetched, opened."""

from closed_form import CASES
from hub_server import HubServer

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
