"""Ten things that a newcomer wants, each from the home page, by clicks on what can be seen."""

from dataclasses import dataclass

import pytest

from .conftest import PATIENCE, Visitor, box_of, case_link

pytestmark = pytest.mark.nightly


@dataclass
class Hand:
    """A hand that counts its clicks."""

    visitor: Visitor
    clicks: int = 0

    def click(self, selector: str, text: str | None = None) -> None:
        """Clicks the first visible thing that a selector names, if it says this."""
        found = self.visitor.page.locator(selector).filter(visible=True)
        found = found.filter(has_text=text) if text else found
        found.first.click(timeout=PATIENCE)
        self.clicks += 1


@pytest.fixture
def hand(visitor: Visitor) -> Hand:
    visitor.open(**case_link("copy", step="2"))
    return Hand(visitor)


def menu(hand: Hand, name: str) -> None:
    hand.click(".st-key-menu a", name)


def test_the_source_word_that_a_target_word_looks_at_takes_one_click(hand: Hand) -> None:
    hand.click(".lv-strip-target .lv-chip >> nth=2")
    hand.visitor.until("document.querySelector('.lv-count').textContent === 'step 3 of 5'")
    assert "of its weight on" in hand.visitor.page.inner_text(".lv-sentence")
    assert hand.clicks == 1


def test_both_translations_without_a_head_take_two_clicks(visitor: Visitor) -> None:
    visitor.open(model="random", text="one two three", step="1")
    hand = Hand(visitor)
    strips = "document.querySelector('.lv-strips').getBoundingClientRect().top"
    before = visitor.read(strips)
    hand.click("[data-plot=cross] [data-act=off]")
    visitor.page.locator(".st-key-changed").wait_for(timeout=PATIENCE)
    visitor.page.locator("[data-plot=cross].lv-off [data-act=off][aria-pressed=true]").wait_for()
    assert "is off: its output is 0" in visitor.page.inner_text(".lv-sentence")
    assert abs(visitor.read(strips) - before) < 5
    assert "gives no output" in visitor.page.inner_text(".st-key-changed")
    visitor.has(changes=f"ablate_cross_{visitor.params()['cross'].replace('.', '_')}")
    assert hand.clicks <= 2


def test_sinusoidal_beside_rotary_takes_two_clicks(hand: Hand) -> None:
    menu(hand, "Positions")
    hand.visitor.page.wait_for_selector(".stPlotlyChart .main-svg", timeout=PATIENCE)
    hand.click("[data-testid=stButtonGroup] button", "side by side")
    for field in ("encoding", "beside"):
        hand.visitor.page.locator(f".st-key-together-{field} .main-svg").first.wait_for(
            timeout=PATIENCE
        )
    assert hand.clicks == 2


def test_a_pdf_of_a_map_takes_three_clicks(hand: Hand) -> None:
    hand.click("[data-testid=stPopoverButton]", "Export")
    hand.click("[data-testid=stPopoverBody] :is(button, a, label)", "paper")
    with hand.visitor.page.expect_download(timeout=PATIENCE) as waiting:
        hand.click("[data-testid=stPopoverBody] button", "Save PDF")
    assert waiting.value.suggested_filename.endswith(".pdf")
    assert hand.clicks == 3


def test_the_beam_s_alternatives_take_one_click(hand: Hand) -> None:
    menu(hand, "Beam search")
    hand.visitor.page.wait_for_selector(".stPlotlyChart .main-svg", timeout=PATIENCE)
    assert hand.clicks == 1


def test_the_causal_mask_with_its_reason_takes_one_click(hand: Hand) -> None:
    menu(hand, "Masks")
    reason = hand.visitor.page.get_by_text("Why −∞?")
    reason.wait_for(timeout=PATIENCE)
    hand.visitor.page.wait_for_selector(".stPlotlyChart .main-svg", timeout=PATIENCE)
    assert box_of(reason)["y"] < 500
    assert box_of(hand.visitor.page.locator(".stPlotlyChart .main-svg").first)["y"] < 600
    assert hand.clicks == 1


def test_a_model_that_learns_to_reverse_takes_three_clicks_to_start(hand: Hand) -> None:
    menu(hand, "Training")
    hand.click("[data-testid=stMain] [role=radio]", "train here")
    hand.visitor.page.get_by_text("while you watch").first.wait_for(timeout=PATIENCE)
    assert hand.clicks == 2


def test_the_file_that_one_saved_is_asked_for_after_two_clicks(hand: Hand) -> None:
    hand.click(".st-key-menu summary", "Research")
    menu(hand, "Open a file")
    hand.visitor.page.locator("[data-testid=stFileUploaderDropzone] button").wait_for(
        timeout=PATIENCE
    )
    assert hand.clicks == 2


def test_the_meaning_of_a_word_takes_one_click(hand: Hand) -> None:
    hand.visitor.until("CSS.highlights.get('glossary')?.size > 0")
    place = hand.visitor.read(
        """() => {
          const [range] = [...CSS.highlights.get("glossary")].filter((r) => r.toString() === "weight");
          const box = range.getBoundingClientRect();
          return [box.x + box.width / 2, box.y + box.height / 2];
        }"""
    )
    hand.visitor.page.mouse.click(*place)
    hand.visitor.page.locator(".glossary:visible").wait_for(timeout=PATIENCE)
    assert "share in one head's sum" in hand.visitor.page.inner_text(".glossary")
    hand.visitor.page.keyboard.press("Escape")
    assert hand.visitor.page.locator(".glossary:visible").count() == 0
