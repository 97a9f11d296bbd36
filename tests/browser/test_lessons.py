"""A lesson in Chromium: walked step by step, answered right and wrong, and left by the browser's
Back."""

import re
from urllib.parse import urlencode

import pytest
from nightly import thinned

from explorer.app.lessons.files import every, find

from .conftest import Visitor, box_of, case_link

LESSON = find("map")
assert LESSON is not None
HEIGHT = 900


def arrived(visitor: Visitor, step: int) -> None:
    """Waits until a step of the lesson is drawn, and its address is written."""
    visitor.has(lesson=f"map.{step}")
    assert LESSON is not None
    page = (
        LESSON.steps[step - 1].page.removesuffix(".py").removeprefix("pages/").removesuffix("app")
    )
    visitor.until(
        "([step, page]) => document.querySelector('.st-key-lesson')?.innerText.includes(`step "
        "${step} of`) && location.pathname === `/${page}` && !location.search.includes('keep=')",
        [step, page],
    )
    visitor.ready()


def click(visitor: Visitor, label: str) -> None:
    visitor.page.locator(".st-key-lesson-head a", has_text=re.compile(f"{label}$")).click()


def test_a_lesson_is_walked_answered_and_gone_back_through(visitor: Visitor) -> None:
    visitor.open(**case_link("copy", step="1", lesson="map.1"))
    visitor.press("ArrowRight")
    visitor.until("location.search.includes('step=2')")
    click(visitor, "Next")
    arrived(visitor, 2)
    assert visitor.count().startswith("step 2 ")
    options = visitor.page.locator(".st-key-lesson-options button")
    options.first.wait_for()
    right = 0
    for i in range(options.count()):
        options.nth(i).click()
        visitor.until(
            "i => document.querySelectorAll('.st-key-lesson-options button')[i].dataset.testid"
            ".includes('primary')",
            i,
        )
        visitor.rested()
        text = visitor.page.inner_text(".st-key-lesson-question")
        assert "Measured:" in text
        right += "Right." in text
        assert ("Right." in text) != ("You chose" in text)
    assert right == 1
    click(visitor, "Next")
    arrived(visitor, 3)
    click(visitor, "Next")
    arrived(visitor, 4)
    visitor.page.go_back()
    arrived(visitor, 3)
    visitor.page.go_back()
    arrived(visitor, 2)
    visitor.page.go_back()
    arrived(visitor, 1)
    assert visitor.count().startswith("step 2 ")


PICTURES = {
    "app.py": "[data-plot=next] .lv-race",
    "pages/cross_attention.py": "[data-plot=cross] .lv-sheet",
    "pages/encoder_self_attention.py": "[data-plot=encoder] .lv-sheet",
    "pages/decoder_self_attention.py": "[data-plot=decoder] .lv-sheet",
    "pages/inside_a_head.py": ".slot .pic-plot",
    "pages/masks.py": ".st-key-masks-mask .nsewdrag",
    "pages/training.py": ".st-key-shifted .main-svg",
    "pages/explanation.py": ".st-key-measures .main-svg",
}
"""The picture that a question asks about, by its page; one of its numbers' parts where it has
several."""
FIRST = {
    name: next(i for i, step in enumerate(lesson.steps) if step.question is not None)
    for name, lesson in every()[0].items()
}


@pytest.mark.parametrize(("name", "i"), thinned(FIRST.items(), 3))
def test_the_picture_that_is_asked_about_lies_in_the_window(
    visitor: Visitor, name: str, i: int
) -> None:
    lesson = find(name)
    assert lesson is not None
    step = lesson.steps[i]
    visitor.page.set_viewport_size({"width": 1280, "height": 800})
    model = "language/lm-en" if "language-model" in lesson.needs else "en-pt"
    asked = {**step.params, "lesson": f"{name}.{i + 1}", "model": model}
    visitor.page.goto(
        f"{visitor.base}/{step.page.removesuffix('.py').removeprefix('pages/')}?{urlencode(asked)}"
    )
    visitor.page.locator(".st-key-lesson-options button").first.wait_for()
    picture = visitor.page.locator(PICTURES[step.page]).first
    picture.wait_for()
    inside = (
        "selector => { const { top, bottom } = "
        "document.querySelector(selector).getBoundingClientRect();"
    )
    inside += " return top >= 0 && bottom > top && bottom <= innerHeight }"
    visitor.until(inside, PICTURES[step.page])
    # the marked row is a source token's in the encoder alone
    of_encoder = step.page == "pages/encoder_self_attention.py"
    of_encoder = of_encoder or step.params.get("kind") == "encoder"
    assert visitor.page.locator(".lv-strip-source .lv-on").count() == of_encoder


def test_an_answer_moves_no_map_and_lets_the_view_speak(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 1280, "height": 800})
    visitor.open("cross_attention", lesson="map.2", model="en-pt")
    told = "document.querySelector('.lv-sentence').innerText"
    visitor.until(f"{told} === '…'")
    text = visitor.hover_text("cross", 0, 0)
    assert re.search(r"key", text)
    assert not re.search(r"weight|\d\.\d", text)
    where = "document.querySelector('[data-plot=cross] .lv-sheet').getBoundingClientRect().top"
    before = visitor.read(where)
    visitor.page.locator(".st-key-lesson-options button").first.click()
    visitor.until(f"{told}.includes('of its weight on')")
    visitor.until("document.querySelectorAll('.lv-strip-source .lv-on').length === 1")
    assert abs(visitor.read(where) - before) < 4
    assert re.search(r"\d\.\d", visitor.hover_text("cross", 0, 0))


def test_a_query_is_built_and_graded_without_a_jump_and_opens_again(visitor: Visitor) -> None:
    view = {"model": "en-pt", "section": "build", "goal": "copy", "two": "1.5", "lesson": "copy.4"}
    page = visitor.page
    page.goto(f"{visitor.base}/inside_a_head?{urlencode(view)}")
    picture = page.locator(".st-key-build-row .main-svg, [class*=st-key-build] .main-svg").first
    picture.wait_for()
    visitor.rested()
    before = box_of(picture)["y"]
    for name, value in (("a", "6"), ("b", "-5"), ("length", "10")):
        box = page.locator(f"input[type=number][aria-label^='{name[0]} ·']")
        box.fill(value)
        box.press("Enter")
        visitor.has(**{name: value})
    visitor.until("document.querySelector('.st-key-lesson-question').innerText.includes('Right.')")
    assert box_of(picture)["y"] == before
    page.reload()
    visitor.until("document.body.innerText.includes('Reached.')")
    assert page.locator("input[type=number][aria-label^='l ·']").input_value() == "10.00"


def test_a_lesson_goes_on_while_it_is_presented(visitor: Visitor) -> None:
    visitor.open("cross_attention", **case_link("copy"), present="yes", lesson="map.3")
    visitor.page.locator(".lv-present").wait_for()
    shown = visitor.page.locator(".st-key-lesson-text")
    visitor.until(
        "getComputedStyle(document.querySelector('.st-key-lesson-text p')).visibility === 'visible'"
    )
    assert box_of(shown)["y"] > HEIGHT / 2
    click(visitor, "Next")
    visitor.until("document.querySelector('.st-key-lesson')?.innerText.includes('step 4 of')")
    visitor.has(present="yes", lesson="map.4")
    visitor.page.locator(".lv-present").wait_for()
