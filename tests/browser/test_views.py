"""Lines, strongest keys, words and windows in Chromium: pointer, keys, phone, dark."""

from closed_form import CASES, KNOWN

from .conftest import Visitor, box_of, case_link

RANDOM = {"model": "random", "text": "one seventeen two three", "words": "yes"}
LONG = " ".join(["one two three four five six eight nine ten"] * 6)


def whole(visitor: Visitor) -> None:
    """Nothing went wrong in the view."""
    assert visitor.page.locator(".lv-problem").is_hidden()


def test_a_line_says_its_known_weight_and_a_token_stands_alone(visitor: Visitor) -> None:
    case = CASES["shift"]
    visitor.open("cross_attention", **case_link("shift"), cross="1.2", show="lines")
    visitor.rested()
    for row, key in list(enumerate(case.keys("cross", 1)))[:3]:
        x, y = _middle(visitor, row)
        visitor.page.mouse.move(x, y)
        visitor.until("!document.querySelector('.lv-tip').hidden")
        told = visitor.told(".lv-tip")
        assert float(told.split("weight ")[1]) > KNOWN
        assert f"key {case.source_tokens[key].removeprefix('▁')}:" in told
        assert visitor.page.locator(".lv-hovered").count() >= 2
        visitor.page.mouse.move(5, 5)
    whole(visitor)
    token = visitor.page.locator(".lv-lines text", has_text="sechs").first
    token.hover()
    visitor.until("document.querySelectorAll('.lv-isolated .lv-alone').length === 1")
    token.click()
    visitor.until("document.querySelector('.lv-count').textContent === 'step 3 of 6'")
    visitor.page.mouse.move(5, 5)
    assert visitor.page.locator(".lv-isolated .lv-alone").count() == 1
    token.click()
    visitor.page.mouse.move(5, 5)
    visitor.until("document.querySelectorAll('.lv-isolated').length === 0")


def _middle(visitor: Visitor, row: int) -> tuple[float, float]:
    """A point on the line of a row, a third of the way to its key."""
    x, y = visitor.read(
        """(row) => {
          const line = document.querySelectorAll(".lv-query")[row].querySelector("line");
          const at = (name) => Number(line.getAttribute(name));
          const box = line.ownerSVGElement.getBoundingClientRect();
          const third = (one, two) => at(one) + (at(two) - at(one)) / 3;
          return [box.left + third("x1", "x2"), box.top + third("y1", "y2")];
        }""",
        row,
    )
    return x, y


def test_the_lists_follow_the_cursor_and_lead_to_other_tokens(visitor: Visitor) -> None:
    case = CASES["copy"]
    visitor.open("cross_attention", **case_link("copy", step="1"), cross="1.2", show="strongest")
    visitor.page.focus(".lv")
    for step in range(3):
        key = case.source_tokens[case.keys("cross", 1)[step]].removeprefix("▁")
        first = visitor.page.locator(".lv-list-query tr").nth(1)
        assert first.inner_text().split()[0] == key
        assert float(first.inner_text().split()[1]) >= 0.99
        strong = visitor.page.locator(".lv-shaded .lv-strong")
        assert strong.all_text_contents() == [key]
        bars = visitor.page.locator("[data-plot=row] .lv-body").get_attribute("aria-label") or ""
        assert key in bars.partition("Largest of ")[2].split(": ")[1]
        visitor.page.keyboard.press("ArrowRight")
        visitor.until(f"document.querySelector('.lv').dataset.painted === '{step + 1}'")
    visitor.page.locator(".lv-shaded .lv-token", has_text="four").click()
    visitor.until("location.search.includes('source=4')")
    reader = case.target_tokens[case.keys("cross", 1).index(3)].removeprefix("▁")
    assert f"predicts {reader}" in visitor.page.locator(".lv-list-key tr").nth(1).inner_text()
    whole(visitor)
    visitor.page.get_by_role("button", name="table").click()
    visitor.page.wait_for_selector("[data-testid=stDataFrame]")
    assert "Strongest links" in visitor.page.inner_text("[data-testid=stPopoverBody]")


def test_every_way_of_drawing_keeps_the_cursor_and_shows_hostile_tokens_as_text(
    visitor: Visitor,
) -> None:
    text = "<img src=x onerror=alert(1)> </script> <b>one</b> שלום"
    visitor.open("encoder_self_attention", model="random", text=text, words="yes", source="3")
    count = visitor.count()
    assert count.startswith("source token 3 of")
    for name, show in (("lines", "lines"), ("strongest keys", "strongest"), ("matrix", "encoder")):
        visitor.page.get_by_role("radio", name=name).click()
        visitor.until("show => document.querySelector(`[data-plot=${show}]`)", show)
        if show != "encoder":
            visitor.has(show=show)
        visitor.ready()
        assert visitor.count() == count, name
        hostile = visitor.page.locator(".lv img, .lv script, .lv b:not(.lv-title b)")
        assert [each.evaluate("node => node.outerHTML") for each in hostile.all()] == [], name
        whole(visitor)
    visitor.until("document.querySelector('[data-plot=encoder] .lv-row')?.hidden === false")
    assert "show" not in visitor.params()


def test_a_word_is_one_row_whose_pieces_light_up_together(visitor: Visitor) -> None:
    visitor.open("encoder_self_attention", **RANDOM, source="4")
    pieces = len(visitor.chips("source"))
    rows = visitor.page.locator("[data-plot=encoder] .ytick").count()
    assert rows == 5 < pieces
    visitor.page.mouse.move(*visitor.centre("encoder", 1, 0))
    visitor.until("document.querySelectorAll('.lv-strip .lv-hovered').length > 1")
    assert visitor.page.locator("[data-plot=encoder] .lv-across").is_visible()
    assert visitor.page.locator("[data-plot=encoder] .lv-down").is_visible()
    hovered = visitor.page.eval_on_selector_all(
        ".lv-hovered .lv-word", "es => es.map(e => e.firstChild.textContent)"
    )
    assert "".join(hovered).replace("‿", "").removeprefix("◦") == "seventeen"
    top = box_of(visitor.page.locator("[data-plot=encoder] .lv-row"))
    assert abs(top["y"] + top["height"] / 2 - visitor.centre("encoder", 1, 0)[1]) < 2
    visitor.proved()
    assert "from a verified trace" in visitor.told("[data-plot=encoder] .lv-caption")


def test_several_tokens_are_one_row_by_mouse_and_by_keyboard(visitor: Visitor) -> None:
    visitor.open("decoder_self_attention", **case_link("copy"), decoder="1.1")
    chips = visitor.page.locator(".lv-strip-target .lv-chip")
    chips.nth(1).click()
    chips.nth(3).click(modifiers=["Shift"])
    visitor.has(step="4", steps="2-4")
    rows = [_row(visitor, row) for row in (1, 2, 3)]
    mean = [sum(cells) / 3 for cells in zip(*rows, strict=True)]
    assert "The mean of 3 rows" in visitor.told(".lv-sentence")
    assert f"weight {max(mean):.2f}" in visitor.told(".lv-sentence")
    assert visitor.page.locator("[data-plot=decoder] .lv-band i").count() == len(mean)
    assert visitor.page.locator(".lv-strip .lv-on").count() == 3
    chips.nth(2).click(modifiers=["Control"])
    visitor.has(steps="2.4")
    visitor.page.click("[data-way=sum]")
    visitor.has(steps="2.4", together="sum")
    total = [one + other for one, other in zip(rows[0], rows[2], strict=True)]
    assert f"weight {max(total):.2f} of 2.00" in visitor.told(".lv-sentence")
    visitor.press("Shift+ArrowRight")
    visitor.has(step="5", steps="2-5")  # from the end that stays
    visitor.press("Escape")
    visitor.until("!document.querySelector('.lv-several')")
    visitor.until("!location.search.includes('steps')")
    start, end = (box_of(chips.nth(place)) for place in (0, 2))
    visitor.page.mouse.move(start["x"] + 5, start["y"] + 5)
    visitor.page.mouse.down()
    visitor.page.mouse.move(end["x"] + 5, end["y"] + 5, steps=8)
    visitor.page.mouse.up()
    visitor.has(step="3", steps="1-3")
    chips.nth(4).click()
    visitor.has(step="5")
    visitor.until("!location.search.includes('steps')")


def _row(visitor: Visitor, row: int) -> list[float]:
    """The weights of a row of the decoder's map, as the browser has them."""
    script = """([row]) => {
      const { customdata } = document.querySelector('[data-plot=decoder] .js-plotly-plot').data[0];
      const { bdata, shape } = customdata;
      const bytes = Uint8Array.from(atob(bdata), (letter) => letter.charCodeAt(0));
      const numbers = new Float32Array(bytes.buffer);
      const [, columns, channels] = shape.split(',').map(Number);
      return Array.from({ length: columns }, (_, key) => numbers[(row * columns + key) * channels]);
    }"""
    return list(visitor.page.evaluate(script, [row]))


def test_the_wall_scrolls_in_its_own_box_keeps_its_labels_and_opens_a_head(
    visitor: Visitor,
) -> None:
    visitor.open("", model="language/writer", text="one two three", decoder="1.1", sort="layer")
    assert visitor.page.locator(".lv-tile").count() == 8
    assert visitor.page.locator(".lv-chosen-tile").get_attribute("data-head") == "0.0"
    visitor.page.add_style_tag(content=".lv-all-heads { height: 70px; width: 120px }")
    box = visitor.page.locator(".lv-all-heads")
    before = visitor.read("document.querySelector('.stMain').scrollTop")
    box.evaluate("node => node.scrollTo(60, 40)")
    assert visitor.read("document.querySelector('.lv-all-heads').scrollTop") > 0
    assert visitor.read("document.querySelector('.stMain').scrollTop") == before
    edge = box_of(box)
    assert abs(box_of(visitor.page.locator(".lv-tile-label").last)["x"] - edge["x"]) < 3
    assert abs(box_of(visitor.page.locator(".lv-tile-columns"))["y"] - edge["y"]) < 3
    visitor.page.locator("[data-head='1.2']").click()
    visitor.has(decoder="2.3")
    visitor.until("document.querySelector('.lv-chosen-tile').dataset.head === '1.2'")
    visitor.open("", model="language/writer", text="one two three", sort="weight", step="2")
    shares = [float(text) for text in visitor.page.locator(".lv-tile-number").all_inner_texts()]
    assert len(shares) == 8
    assert shares == sorted(shares, reverse=True)


def test_a_hidden_row_is_named_and_its_neighbours_stay_in_place(visitor: Visitor) -> None:
    visitor.open("encoder_self_attention", **case_link("copy", source="8"), hide="special")
    assert "hidden" in visitor.told(".lv-sentence")
    assert visitor.page.locator("[data-plot=encoder] .lv-row").is_hidden()
    visitor.press("ArrowLeft")
    visitor.until("!document.querySelector('[data-plot=encoder] .lv-row').hidden")
    assert "six" in visitor.told(".lv-sentence")


def test_a_click_on_the_whole_matrix_moves_the_window(visitor: Visitor) -> None:
    visitor.open("encoder_self_attention", model="random", text=LONG, window="16", source="3")
    assert "queries 1–16" in visitor.told("[data-plot=encoder] .lv-caption")
    place = "[data-plot=whole] .lv-window"
    before = visitor.page.eval_on_selector(place, "e => parseFloat(e.style.top)")
    overview = visitor.page.locator("[data-plot=whole] .nsewdrag")
    box = box_of(overview)
    overview.click(position={"x": box["width"] * 0.9, "y": box["height"] * 0.9})
    visitor.until(
        "!document.querySelector('[data-plot=encoder] .lv-caption').textContent.includes('queries "
        "1–16')"
    )
    visitor.ready()
    assert visitor.page.eval_on_selector(place, "e => parseFloat(e.style.top)") > before
    assert visitor.page.locator("[data-plot=encoder] .lv-row").is_visible()
    whole(visitor)


def test_a_link_opens_what_was_seen_and_back_returns_to_it(visitor: Visitor) -> None:
    link = {
        "cross": "1.2",
        "step": "3",
        "source": "2",
        "words": "yes",
        "hide": "special",
        "scale": "log",
    }
    visitor.open("cross_attention", **case_link("copy"), **link)
    visitor.page.focus(".lv")
    seen = _seen(visitor)
    assert seen["count"] == "step 3 of 5"
    assert "logarithmic" in seen["caption"]
    visitor.has(**link)
    visitor.page.get_by_role("radio", name="lines").click()
    visitor.until(
        "document.querySelector('[data-plot=lines]') && location.search.includes('show=lines')"
    )
    visitor.ready()
    visitor.rested()
    visitor.page.go_back()
    visitor.until("document.querySelector('[data-plot=cross] .lv-row')?.hidden === false")
    visitor.ready()
    assert _seen(visitor) == seen


def _seen(visitor: Visitor) -> dict[str, object]:
    """Cursor, head, words, colours and rings, as they are on the screen."""
    plot = "[data-plot=cross]"
    chosen = visitor.page.locator(".lv-strip .lv-on").all_inner_texts()
    return {
        "count": visitor.count(),
        "title": visitor.told(f"{plot} .lv-title"),
        "caption": visitor.told(f"{plot} .lv-caption"),
        "sentence": visitor.told(".lv-sentence"),
        "chosen": chosen,
        "rows": visitor.page.locator(f"{plot} .ytick").all_text_contents(),
        "ring": visitor.page.eval_on_selector(f"{plot} .lv-sheet", "e => e.getAttribute('style')"),
    }


def test_cells_say_what_they_did_and_one_cell_says_everything(visitor: Visitor) -> None:
    visitor.open(**case_link("copy"))
    weights = visitor.told(".lv-sentence")
    assert "of its weight" in weights
    assert "A weight is a share" in weights
    visitor.page.get_by_role("radio", name="effect").click()
    visitor.until("location.search.includes('measure=effect')")
    visitor.until(
        "document.querySelector('.lv-sentence').innerText.includes('Effects do not add up')"
    )
    assert "Δ log p" in visitor.told(".lv-sentence")
    assert "share of the largest effect" in visitor.told("[data-plot=cross]")
    visitor.page.get_by_role("button", name="This cell").click()
    table = visitor.page.locator(".st-key-cell-measures table")
    table.wait_for()
    names = [each.inner_text() for each in table.locator("tbody tr td:first-child").all()]
    assert len(names) >= 5
    assert "weight" in names
    whole(visitor)
