"""A page on a phone scrolls only downwards; a picture that is wider scrolls in a frame of its
own."""

from collections.abc import Callable

import pytest

from .conftest import PHONE, Visitor, box_of, case_link

COPY = case_link("copy", step="2")
RANDOM = {"model": "random", "text": "one two three"}
HOSTILE = '<img src=x onerror="window.hacked = 1"> </s> %{x} #000001 \u202etwo'
STRANGE = {"model": "random", "text": HOSTILE}
PROMPT = {"model": "language/writer", "text": "one two three"}
LONG = " ".join(["one two three four five six eight nine ten"] * 6)
PLOT = "document.querySelector('.stMain .main-svg')"
WIDTHS = (
    "[document.documentElement, document.querySelector('.stMain')].map((each) => each.scrollWidth)"
)
SCROLLS = (
    "name => { const own = document.querySelector(name); return own.scrollWidth > own.clientWidth }"
)
ROWS = [
    (
        "inside_a_head",
        {**COPY, "section": "weights", "kind": "decoder", "what_if": "no-scale"},
        """document.body.innerText.includes("what if, not the model's computation")""",
        "",
    ),
    ("training", {**RANDOM, "target": "eins drei zwei"}, PLOT, ".st-key-frame-shifted"),
    ("recurrent", {}, PLOT, ""),
]
"""Pages: what the address says, what is waited for, and the frame that scrolls."""
NIGHTLY = [
    ("recurrent", {"view": "path"}, PLOT, ""),
    ("beam_search", {**RANDOM, "decode": "beam-8"}, PLOT, ".st-key-frame-search-tree"),
    (
        "positions",
        {**COPY, "view": "sentence"},
        "document.body.innerText.includes('which maps move')",
        "",
    ),
    ("masks", {**STRANGE, "view": "batch", "sentences": f"one two\n{HOSTILE}"}, PLOT, ""),
    ("cross_attention", {**STRANGE, "view": "alignment", "pairs": "1-1"}, PLOT, ""),
    (
        "what_if",
        {**STRANGE, "view": "compare", "against": "sentence", "other": f"one {HOSTILE}"},
        PLOT,
        "",
    ),
    *(
        (
            page,
            {**PROMPT, **view},
            "document.querySelector('.lv').dataset.ready",
            "",
        )
        for page, view in (
            ("", {}),
            ("training", {"view": "surprisal"}),
            ("training", {"view": "lengths"}),
        )
    ),
]


@pytest.mark.parametrize("rows", [ROWS, pytest.param(NIGHTLY, marks=pytest.mark.nightly)])
def test_nothing_is_wider_than_a_phone_and_no_typed_text_runs(visitor: Visitor, rows: list) -> None:
    visitor.phone()
    for page, params, ready, frame in rows:
        visitor.go(page, ready, **params)
        visitor.rested()
        assert max(visitor.read(WIDTHS)) <= PHONE["width"], (page, params)
        assert not frame or visitor.page.evaluate(SCROLLS, frame), page
        assert visitor.page.evaluate("window.hacked") is None, page
        assert visitor.page.locator(".stException, .stMain img, .js-plotly-plot a").count() == 0, (
            page
        )


def test_at_four_times_the_size_the_way_of_decoding_is_read_whole(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 320, "height": 256})
    visitor.open(**COPY)
    cut = """[...document.querySelectorAll(".st-key-decoding *")]
      .filter((e) => e.clientWidth > 1 && (e.value ?? e.textContent) === "greedy")
      .map((e) => e.scrollWidth - e.clientWidth)"""
    found = visitor.read(f"{cut}.length && {cut}")
    assert max(found) <= 0, found


def test_maps_are_whole_and_the_first_tap_selects_a_cell(newcomer: Callable[..., Visitor]) -> None:
    visitor = newcomer(has_touch=True)
    visitor.phone()
    visitor.open(
        model="random",
        text="one two three four five six eight nine ten stop one two three",
        step="4",
    )
    assert max(visitor.read(WIDTHS)) <= PHONE["width"]
    rights = "[...document.querySelectorAll('.lv-cell')].map(e => e.getBoundingClientRect().right)"
    assert max(visitor.read(rights)) <= PHONE["width"]
    visitor.page.locator("[data-plot=cross]").scroll_into_view_if_needed()
    visitor.page.touchscreen.tap(*visitor.centre("cross", 1, 6))
    visitor.until("document.querySelector('.lv-count').textContent.startsWith('step 2 of')")


@pytest.mark.nightly
def test_a_large_map_scrolls_under_its_labels(newcomer: Callable[..., Visitor]) -> None:
    visitor = newcomer(has_touch=True, color_scheme="dark")
    visitor.phone()
    visitor.open("encoder_self_attention", model="random", text=LONG)
    assert max(visitor.read(WIDTHS)) <= PHONE["width"]
    frame = "document.querySelector('[data-plot=encoder] .lv-scroll')"
    assert visitor.read(f"{frame}.scrollWidth > {frame}.clientWidth + 100")
    left = "document.querySelector('.lv-pin-rows').getBoundingClientRect().left"
    before = visitor.read(left)
    visitor.page.evaluate(f"{frame}.scrollLeft = 150")
    assert visitor.read(left) == before
    shown = visitor.page.locator(".lv-pin-rows span")
    assert shown.count() > 10
    assert not shown.first.inner_text().isdigit()
    assert visitor.page.locator(".lv-problem").is_hidden()


def test_the_strip_of_a_lesson_takes_a_few_lines(visitor: Visitor) -> None:
    visitor.phone()
    visitor.open(**case_link("copy", lesson="map.2"))
    visitor.has(lesson="map.2")
    visitor.page.locator(".st-key-lesson-options button").last.wait_for()
    assert box_of(visitor.page.locator(".st-key-lesson"))["height"] <= 240
    assert max(visitor.read(WIDTHS)) <= PHONE["width"]
