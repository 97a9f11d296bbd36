"""The home page in Chromium: typing, stepping, clicking, linking."""

import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from gated_app import HELD

from .conftest import PATIENCE, VIEWPORT, Visitor, case_link
from .test_home_sizes import OVERLAYS

COUNT = "document.querySelector('.lv-count')?.textContent"
RANDOM = {
    "model": "random",
    "text": "one two three four five six eight nine ten stop one two three",
}


def test_a_map_explains_itself_a_tour_leads_over_the_page_and_the_theme_is_followed(
    visitor: Visitor,
) -> None:
    visitor.page.emulate_media(color_scheme="light")
    visitor.open(**case_link("copy"), cross="1.1")
    details = visitor.page.locator("[data-plot=cross] .lv-proof-text")
    assert details.is_hidden()
    visitor.page.locator("[data-plot=cross] .lv-proof summary").click()
    told = details.inner_text()
    assert "Cross-attention · layer 1 · head 1 · step" in told
    assert "Largest row-sum error" in told
    assert "is this model's default" in told
    visitor.page.keyboard.press("Escape")
    assert details.is_hidden()
    tour_of_five_clicks(visitor)
    ink = "getComputedStyle(document.querySelector('[data-plot=cross] .xtick text')).fill"
    light = visitor.read(ink)
    visitor.page.emulate_media(color_scheme="dark")
    visitor.until(f"light => {ink} !== light", light)


def tour_of_five_clicks(visitor: Visitor) -> None:
    """Takes the tour: each click lights one thing, and the last one ends it."""
    visitor.page.get_by_role("button", name="Take the tour").click()
    for number in range(1, 6):
        assert visitor.page.inner_text(".lv-tour b") == f"{number} of 5"
        assert visitor.page.locator(".lv-lit").count() == 1
        visitor.page.get_by_role(
            "button", name="Next" if number < 5 else "Done", exact=True
        ).click()
    assert visitor.page.locator(".lv-tour").is_hidden()


def test_enter_translates_what_was_typed_and_draws_each_map_once(visitor: Visitor) -> None:
    visitor.open(**case_link("copy"))
    visitor.page.evaluate("""() => {
      const { react } = Plotly;
      window.drawn = [];
      Plotly.react = (node, ...figure) => {
        window.drawn.push(node.closest("[data-plot]").dataset.plot);
        return react(node, ...figure);
      };
    }""")
    box = visitor.page.get_by_label("Sentence to translate")
    box.fill("nine eight stop")
    box.press("Enter")
    visitor.has(text="nine eight stop")
    visitor.until("document.querySelector('.lv-strip-target')?.textContent.includes('neun')")
    visitor.until("window.drawn.length >= 3")
    visitor.ready()
    visitor.rested()
    assert sorted(visitor.read("window.drawn.slice(0, 3)")) == ["cross", "decoder", "encoder"]
    assert visitor.chips("source") == ["nine", "eight", "stop", "</s>"]
    assert visitor.chips("target")[:2] == ["neun", "acht"]
    assert visitor.page.evaluate("document.activeElement.classList.contains('lv')")
    visitor.page.keyboard.press("ArrowRight")
    visitor.until("location.search.includes('step=')")


def test_thirty_quick_clicks_count(visitor: Visitor) -> None:
    visitor.open(**RANDOM, step="4")
    steps = int(visitor.count().split()[-1])
    assert steps > 18
    forward, back = (visitor.page.get_by_label(name) for name in ("One forward", "One back"))
    for button in (*[forward] * 14, *[back] * 15, forward):
        button.click()
    visitor.has(step="4")
    assert visitor.count() == f"step 4 of {steps}"


def test_a_lost_step_is_told_again_and_a_move_waits_for_the_answer_to_the_one_before(
    newcomer: Callable[..., Visitor],
) -> None:
    visitor = newcomer(viewport=VIEWPORT)
    lost = list[bytes]()
    lose = threading.Event()
    seen = list[str]()
    answers = list[Callable[[], None]]()
    hold = threading.Event()

    def pass_on(route: Any) -> None:
        server = route.connect_to_server()

        def send(message: bytes) -> None:
            if lose.is_set() and not lost:
                lost.append(message)
                return
            seen.append("move")
            server.send(message)

        def answer(message: bytes) -> None:
            if hold.is_set():
                answers.append(partial(route.send, message))
            else:
                seen.append("answer")
                route.send(message)

        route.on_message(send)
        server.on_message(answer)

    visitor.page.route_web_socket("**/_stcore/stream", pass_on)  # the page keeps it
    visitor.open(**case_link("copy", step="1"))
    visitor.rested()
    lose.set()
    forward = visitor.page.get_by_label("One forward")
    forward.click()
    visitor.has(step="2")
    assert len(lost) == 1
    visitor.rested()
    seen.clear()
    hold.set()
    for step in (3, 4):
        forward.click()
        assert visitor.count() == f"step {step} of 5"
        visitor.page.evaluate("new Promise((done) => setTimeout(done, 300))")
    assert seen == ["move"]
    hold.clear()
    for held in answers:
        held()
    visitor.has(step="4")
    assert seen.count("move") == 2


def test_a_link_reopens_the_view_and_back_forward_and_the_menu_keep_it(
    newcomer: Callable[..., Visitor],
) -> None:
    visitor = newcomer()
    other = newcomer()
    visitor.open(**case_link("copy", step="1", source="5", decoder="1.2"))
    head = visitor.page.get_by_label("Head of cross-attention")
    head.focus()
    head.select_option(label="L1 H2")
    visitor.until(
        "document.querySelector('[data-plot=cross] .lv-caption').textContent.includes('head 2')"
    )
    visitor.has(cross="1.2")
    assert visitor.count() == "step 1 of 5"
    assert head.evaluate("node => node === document.activeElement && node.value") == "0.1"
    visitor.page.focus(".lv")
    for step in ("2", "3"):
        visitor.page.keyboard.press("ArrowRight")
        visitor.has(step=step)
    other.page.goto(visitor.page.url)
    other.ready()
    for each in (Visitor.count, Visitor.params, partial(Visitor.told, selector=".lv-sentence")):
        assert each(visitor) == each(other)
    visitor.page.go_back()
    visitor.until(f"{COUNT} === 'step 2 of 5'")
    visitor.page.go_forward()
    visitor.until(f"{COUNT} === 'step 3 of 5'")
    for page in (
        "cross_attention",
        "encoder_self_attention",
        "decoder_self_attention",
        "cross_attention",
    ):
        visitor.link(page).click()
        visitor.until(f"location.pathname === '/{page}' && !location.search.includes('keep=')")
        visitor.ready()
        own = {"step": "3", "decoder": "1.2", "cross": "1.2", "model": "copy"}
        assert visitor.params() | own == visitor.params()
    visitor.page.go_back()
    visitor.until("document.title.startsWith('Decoder')")
    visitor.ready()
    assert visitor.count() == "step 3 of 5"


def test_a_click_on_a_candidate_goes_on_with_it_and_back_undoes_it(visitor: Visitor) -> None:
    visitor.open(**case_link("copy", step="2"))
    before = visitor.chips("target")
    visitor.page.locator(".lv-rest").click()
    other = visitor.page.locator(".lv-runner:not(:disabled)").first
    token = other.locator(".lv-name").inner_text()
    other.click()
    visitor.until(
        "document.querySelector('.st-key-changed') && location.search.includes('changes=choose_2_')"
    )
    visitor.until(
        "token => document.querySelector('.lv-chosen .lv-name')?.textContent === token", token
    )
    assert visitor.chips("target")[:2] == [before[0], token]
    assert visitor.count().startswith("step 2 of")
    visitor.until("document.querySelectorAll('.lv-tried').length === 2")
    assert "1 change is active" in visitor.page.inner_text(".st-key-changed")
    visitor.page.wait_for_selector("text=✓ verified, with 1 change")
    visitor.page.go_back()
    visitor.until("!document.querySelector('.st-key-changed')")
    visitor.until(
        "token => document.querySelector('.lv-chosen .lv-name')?.textContent === token", before[1]
    )
    assert visitor.chips("target") == before


def test_the_pointer_reads_and_chooses_cells(visitor: Visitor) -> None:
    visitor.open(**case_link("copy", step="4"))
    masked = visitor.hover_text("decoder", 1, 3)
    assert "(masked: this row has not read it yet)" in masked
    assert "weight 0.000" in masked
    visitor.page.mouse.move(*visitor.centre("cross", 2, 5))
    visitor.until("document.querySelectorAll('.lv-hovered').length === 2")
    words = "es => es.map(e => e.textContent)"
    assert visitor.page.eval_on_selector_all(".lv-hovered .lv-word", words) == ["five", "drei"]
    assert visitor.page.locator("[data-plot=encoder] .lv-hover").is_visible()
    visitor.hover_text("cross", 1, 6)  # plotly.js takes a click for where it last saw the pointer
    visitor.page.mouse.click(*visitor.centre("cross", 1, 6))
    visitor.until("location.search.includes('source=7')")
    assert visitor.count() == "step 2 of 5"
    assert visitor.page.eval_on_selector_all(".lv-on .lv-word", words) == ["six", "zwei"]


def test_a_long_sentence_shows_how_far_it_has_come(visitor: Visitor, gate: Path) -> None:
    text = " ".join([HELD, *["one two three four five six eight nine ten"] * 40])
    held = os.open(gate, os.O_RDWR)
    visitor.page.goto(f"{visitor.base}/?{urlencode({'model': 'random', 'text': text})}")
    visitor.until(
        "document.querySelector('[data-testid=stProgress]')?.textContent.includes('tokens so far')"
    )
    os.write(held, b"open")
    visitor.ready()
    os.close(held)
    assert visitor.page.locator("[data-testid=stProgress]").count() == 0
    visitor.press("Home")
    visitor.until(
        "document.querySelector('[data-plot=decoder] .lv-caption').textContent.includes('queries "
        "1–64')"
    )
    visitor.ready()
    assert visitor.page.locator("[data-plot=decoder] .lv-row").is_visible()
    offsets = visitor.read(OVERLAYS)
    assert len(offsets) == 3
    assert max(map(max, offsets)) < 1


def test_without_plotly_the_strips_and_the_cursor_still_work(visitor: Visitor) -> None:
    visitor.page.route("**/plotly-cartesian*", lambda route: route.abort())
    visitor.page.goto(f"{visitor.base}/?model=copy&text=one+two+three")
    visitor.page.wait_for_selector(".lv-problem:not([hidden])", timeout=PATIENCE)
    assert "plotly.js is missing" in visitor.page.inner_text(".lv-problem")
    visitor.press("Home")
    visitor.until("document.querySelector('.lv-count').textContent.startsWith('step 1 of')")
