"""What the browser says in words and numbers: each is known from the closed form, or computed
elsewhere."""

import math
import re

import numpy as np
import pytest
import torch
from closed_form import CASES, KNOWN, Case
from inside_page import independent

from transformer.translator import Translator

from .conftest import Visitor, case_link

TEXT = "nine two five"
DRAWN = 2e-3
"""Numbers of the page have two or three digits; the app reads the weights of its model in 16
bits."""

LINKS = """() => [...document.querySelectorAll(".lv-flow path")].map((path) => {
  const box = path.ownerSVGElement.getBoundingClientRect();
  const word = ({ x, y }, by) => document.elementsFromPoint(box.left + x, box.top + y + by)
    .find((node) => node.classList.contains("lv-word"))?.firstChild.textContent;
  return [word(path.getPointAtLength(0), -4), word(path.getPointAtLength(path.getTotalLength()), 4)];
})"""
"""The words at both ends of each link."""


def step_on(visitor: Visitor, step: int) -> None:
    """Moves the cursor one step on, to a step counted from 0."""
    visitor.page.keyboard.press("ArrowRight")
    visitor.until(f"document.querySelector('.lv').dataset.painted === '{step}'")


def word(token: str) -> str:
    return token.removeprefix("▁")


def test_hover_texts_and_the_panel_say_the_numbers_that_torch_computes(
    visitor: Visitor, translator: Translator
) -> None:
    visitor.open(model="random", text=TEXT, step="3", encoder="2.3", decoder="2.3", cross="2.3")
    for kind in ("encoder", "decoder", "cross"):
        cells_tell(visitor, translator, kind)
    runners_tell(visitor, translator)


def cells_tell(visitor: Visitor, translator: Translator, kind: str) -> None:
    """Looks at the weights and scores of a row under the pointer."""
    row = 3
    true = independent(translator, TEXT, kind, (1, 2), row)
    scores = true["products"] / math.sqrt(translator.config.d_head)
    for column, (weight, score) in list(enumerate(zip(true["weights"], scores, strict=True)))[
        : row + 1
    ]:
        told = visitor.hover_text(kind, row, column)
        said = re.search(r"weight ([\d.]+) · score before the mask ([-−]?[\d.]+)", told)
        assert said is not None
        assert float(said[1]) == pytest.approx(weight, abs=DRAWN), kind
        assert float(said[2].replace("−", "-")) == pytest.approx(score, abs=1e-2 + DRAWN), kind


def runners_tell(visitor: Visitor, translator: Translator) -> None:
    """Looks at the log-probabilities of the third token's candidates."""
    ids = [step.token_id for step in translator.translate(TEXT).steps]
    source = torch.tensor([[*translator.ids(TEXT), translator.config.eos_id]])
    target = torch.tensor([[translator.config.bos_id, *ids[:-1]]])
    log_probs = translator.model(source, target)[0, 2].log_softmax(-1)
    best = log_probs.topk(10).values
    if visitor.page.locator(".lv-rest").count():
        visitor.page.locator(".lv-rest").click()
    titles = visitor.page.eval_on_selector_all(".lv-runner", "es => es.map(e => e.title)")
    said = [float(re.search(r"log-probability (-[\d.]+) nats", title)[1]) for title in titles]
    np.testing.assert_allclose(said[:9], best[:9].tolist(), atol=1e-2 + DRAWN)


def panel_tells(visitor: Visitor, case: Case, step: int) -> None:
    """Looks at the panel of the next token."""
    token = word(case.target_tokens[step])
    reads = word(case.decoder_input_tokens[step])
    assert visitor.page.locator(".lv-runner.lv-chosen .lv-name").all_inner_texts() == [token]
    assert visitor.page.locator(".lv-runner .lv-name").first.inner_text() == token
    assert f"after reading “{reads}”" in visitor.page.inner_text("[data-plot=next] .lv-about")


def sentence_tells(visitor: Visitor, case: Case, step: int) -> None:
    """Looks at the sentence beside the map of cross-attention."""
    told = " ".join(visitor.page.inner_text(".lv-sentence").split())
    found = re.match(
        r"Predicting “(.+)”, head 2 of layer 1 puts ([\d.]+) % of its weight on “(.+?)”\.", told
    )
    assert found is not None, told
    key = case.keys("cross", 1)[step]
    assert found.group(1, 3) == (word(case.target_tokens[step]), word(case.source_tokens[key]))
    assert float(found[2]) > 100 * KNOWN - 0.5


def bar_tells(visitor: Visitor, case: Case, step: int) -> None:
    """Looks at the bar of the chosen candidate, which is as long as its title says."""
    chosen = visitor.page.locator("[data-plot=next] .lv-chosen")
    assert chosen.locator(".lv-name").inner_text() == word(case.target_tokens[step])
    share = float(chosen.get_attribute("title").split("probability ")[1].split(",")[0])
    scale = chosen.locator("i").evaluate("node => new DOMMatrix(node.style.transform).a")
    assert abs(scale - share) < 1e-3


def link_tells(visitor: Visitor, case: Case, step: int) -> None:
    """Waits for the only link: from the token that is read to the one that is written."""
    read = case.source_tokens[case.keys("cross", 1)[step]]
    link = [[word(read), word(case.target_tokens[step])]]
    visitor.until(f"link => JSON.stringify(({LINKS})()) === JSON.stringify(link)", link)


TOLD = {
    "": ("reverse", (panel_tells, sentence_tells, bar_tells, link_tells)),
    "cross_attention": ("shift", (sentence_tells,)),
}
"""What the pages tell of the step of the cursor, each with a model."""


@pytest.mark.parametrize("page", TOLD)
def test_everything_tells_the_step_of_the_cursor(visitor: Visitor, page: str) -> None:
    name, looks = TOLD[page]
    case = CASES[name]
    visitor.open(page, **case_link(name, step="1", cross="1.2"))
    visitor.page.focus(".lv")
    for step in range(len(case.target_tokens)):
        for tells in looks:
            tells(visitor, case, step)
        if step + 1 < len(case.target_tokens):
            step_on(visitor, step + 1)
