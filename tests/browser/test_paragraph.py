"""A pasted paragraph on the home page in Chromium: marked, stepped through by keys and clicks,
copied."""

from collections.abc import Callable
from typing import Any

from .conftest import PATIENCE, SCRIPTS, VIEWPORT, Visitor, case_link

TEXT = "Nine eight. Eight nine? Nine nine!"


def test_a_pasted_paragraph_is_kept_marked_stepped_through_and_copied(
    newcomer: Callable[..., Visitor],
) -> None:
    visitor = newcomer(viewport=VIEWPORT, permissions=["clipboard-read", "clipboard-write"])
    page = visitor.page
    visitor.open(**case_link("copy"))
    assert page.locator(".par").count() == 0
    page.evaluate("text => navigator.clipboard.writeText(text)", TEXT.replace("? ", "?\n"))
    box = page.get_by_label("Sentence to translate")
    box.click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.press("ControlOrMeta+v")
    assert box.input_value() == TEXT
    box.press("Enter")
    visitor.until(
        "document.querySelector('.par-sentence[aria-current]')?.textContent === 'Nine eight.'"
    )
    visitor.ready()
    assert page.locator(".par-sentence").all_inner_texts() == [
        "Nine eight.",
        "Eight nine?",
        "Nine nine!",
    ]
    visitor.until("!document.querySelector('.par-translation').textContent.includes('…')")
    page.keyboard.press("Alt+ArrowRight")
    visitor.has(text=TEXT, sentence="2")
    visitor.until(
        "document.querySelector('.par-sentence[aria-current]').textContent === 'Eight nine?'"
    )
    visitor.until("document.querySelector('.lv-strip-source').textContent.includes('?')")
    page.locator(".par-sentence").nth(2).click()
    visitor.has(text=TEXT, sentence="3")
    visitor.until("document.querySelector('.par-count').textContent === 'Sentence 3 of 3'")
    page.keyboard.press("Alt+ArrowLeft")
    visitor.has(text=TEXT, sentence="2")
    visitor.until("document.querySelector('.par-count').textContent === 'Sentence 2 of 3'")
    copy = page.get_by_role("button", name="Copy the translation")
    copy.click(timeout=PATIENCE)
    whole = page.locator(".par-translation").inner_text()
    visitor.until("document.querySelector('.par-foot').textContent.includes('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == whole
    box.fill("nine eight stop")
    box.press("Enter")
    visitor.until("document.querySelector('.par') === null")
    visitor.has(text="nine eight stop")
    assert "sentence" not in visitor.params()


def test_a_line_break_in_a_link_is_a_space(visitor: Visitor) -> None:
    visitor.open(model="copy", text="nine\neight stop")
    assert visitor.page.get_by_label("Sentence to translate").input_value() == "nine eight stop"
    assert visitor.chips("source") == ["nine", "eight", "stop", "</s>"]


def test_what_does_not_come_is_asked_for_again(scripts_alone: Any) -> None:
    page: Any = scripts_alone
    opened = """async () => {
      const { show } = await import("/SCRIPTS/page/paragraph.js");
      window.sent = [];
      const setTriggerValue = (...sent) => window.sent.push(sent.join(" "));
      const part = { parentElement: document.body, setTriggerValue };
      const data = { sentences: ["One.", "Two."], at: 0 };
      window.draw = (translations, at = 0) => void show({ ...part, data: { ...data, at, translations } });
      window.draw(["Eins.", null]);
    }""".replace("SCRIPTS", SCRIPTS)
    more = ["more true"]

    def sent(after: int, act: str = "0") -> list[str]:
        """What the browser sends when something is done and `after` ms have gone by."""
        page.evaluate(f"window.sent = []; {act}")
        page.clock.run_for(after)
        found: list[str] = page.evaluate("window.sent")
        return found

    page.clock.install(time=0)
    page.clock.pause_at(1)
    page.evaluate(opened)
    assert page.evaluate("window.sent") == more  # a translation
    assert sent(3_999) == []
    assert sent(1) == more
    assert sent(7_999, "window.draw(['Eins.', null])") == []  # drawn again without it
    assert sent(1) == more
    assert sent(60_000, "window.draw(['Eins.', 'Zwei.'])") == []
    click = "document.querySelectorAll('.par-sentence')[1].click()"
    assert sent(0, click) == ["at 1"]
    assert sent(3_999) == []
    assert sent(1, "window.draw(['Eins.', 'Zwei.'])") == more  # the sentence that was clicked
    assert sent(8_000) == more
    assert sent(60_000, "window.draw(['Eins.', 'Zwei.'], 1)") == []
    assert (
        sent(60_000, "window.draw(['Eins.', 'Zwei.'], 0)") == []
    )  # the Back button of the browser
