"""Maps of a living page in words and without special tokens, by the app's arithmetic on the same numbers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import app_pages
import numpy as np
import pytest
import waiting
from living_pages import Opened

from explorer import page
from explorer.lenses.measures.effect import effect_in
from explorer.lenses.measures.stream import carried
from explorer.lenses.words.reading import read_view
from explorer.linked.living.kinds import READINGS
from explorer.linked.view.home import head_map
from transformer import Translation, Translator, load_translator
from transformer import interventions as do
from transformer.translator import retrace
from transformer.view import Window

from .conftest import PHONE
from .from_disk import Open, accessible, over, said
from .from_disk import open_from_disk as _opened  # noqa: F401

MODEL = Path(__file__).parents[2] / "assets/models/en-de"
TEXTS = ("The grandmothers are sleeping, for sale.", "The bookshelves lean.")
MAPS = """([text, kind, heads, reading]) => import('/living-1/data.js').then(async ({ unpacked }) => {
  const run = await unpacked(text);
  return heads.map((head) => run.map(kind, head, reading));
})"""


@pytest.fixture(scope="module", params=[*TEXTS, "off"])
def run(request: pytest.FixtureRequest) -> Translation:
    changes = [do.ablate("cross", 1, 2)] if request.param == "off" else []
    translator = load_translator(MODEL)
    return translator.translate(TEXTS[0] if changes else request.param, interventions=changes)


def expected(run: Translation, held: Opened, kind: str, head: tuple[int, int], name: str) -> dict[str, Any]:
    """The app's feed of a head that has the weights of the page, to three decimals."""
    view = run.map(kind, *head)
    told = held.feed(kind, *head)
    thousandths = replace(view, weights=held.weights(kind)[head].astype(float))
    read = read_view(thousandths, READINGS[name])
    read = replace(read, weights=read.weights / 1000, hidden=read.hidden / 1000)
    roles = told["choice"]["roles"]
    layers = run.config.sizes[kind][0]
    lengths = view.weights.shape
    return json.loads(json.dumps(head_map(run.model, run, read, lengths, (layers - 1, 0), roles)))


@pytest.mark.parametrize("name", READINGS)
def test_maps_as_they_are_read_are_those_of_the_app(scripts_alone: Any, run: Translation, name: str) -> None:
    held, changed = Opened(page(run)), 0
    for kind, (layers, heads) in run.config.sizes.items():
        every = [(layer, head) for layer in range(layers) for head in range(heads)]
        found = scripts_alone.evaluate(MAPS, [held.text, kind, [list(each) for each in every], name])
        for head, feed in zip(every, found, strict=True):
            if name not in held.run["kinds"][kind]["readings"]:
                continue
            changed += 1
            numbers = same(feed, expected(run, held, kind, head, name), "words" in name)
            exact = read_view(run.map(kind, *head), READINGS[name])
            pieces = np.array([len(group.indices) for group in exact.columns])
            assert (np.abs(numbers - exact.weights) <= 0.0005 * pieces + 1e-5).all()
    assert changed


def same(found: dict[str, Any], told: dict[str, Any], words: bool) -> np.ndarray:
    """Holds a feed of the page against that of the app, but for what says that its numbers were rounded.

    (rows, columns) its weights.
    """
    figures = [json.loads(each.pop("figure")) for each in (found, told)]
    cells = [each["data"][0] for each in figures]
    z, numbers = ([app_pages.array(each.pop(name)) for each in cells] for name in ("z", "customdata"))
    assert np.abs(z[0].astype(int) - z[1]).max() <= 1
    assert ((z[0] == 0) == (z[1] == 0)).all()
    assert numbers[0].shape == numbers[1].shape
    assert np.abs(numbers[0] - numbers[1]).max() <= 0.0051
    np.testing.assert_array_equal(numbers[0][..., 0], numbers[1][..., 0].astype(np.float32))
    if words:
        cells[1]["hovertemplate"] = cells[1]["hovertemplate"].replace(":.3f", ":.2f")
        told["caption"] += " · summed here from weights with three decimals"
    assert figures[0] == figures[1]
    assert found["badge"]["text"] == told["badge"]["text"]
    ours = {"badge", "acts", "name", "view", "choice", "off"}
    for each in set(told) - ours:
        assert found[each] == told[each], each
    assert found["choice"]["head"] == told["choice"]["head"]
    weights: np.ndarray = numbers[0][..., 0]
    return weights


def test_the_switches_merge_words_and_hide_special_tokens(opened: Open) -> None:
    run = load_translator(MODEL).translate(TEXTS[0])
    visitor = opened(page(run, place="step=2&cross=3.5"))
    tab = visitor.page
    for button, name in (("Words", "words"), ("Hide special tokens", "words special")):
        tab.get_by_role("button", name=button).click()
        read = read_view(run.map("cross", 2, 4), READINGS[name])
        waiting.until(
            lambda read=read: (
                f"{len(read.rows)} queries by {len(read.columns)} keys"
                in tab.locator("[data-plot=cross] .lv-body").get_attribute("aria-label")
            )
        )
        over(visitor, "cross", 1, 2)
        weight = f"weight {read.weights[1, 2]:.2f}"
        waiting.until(lambda weight=weight: weight in said(visitor))
    assert visitor.count().startswith("step 2 ")
    tab.get_by_role("button", name="Words").click()
    tab.get_by_role("button", name="Hide special tokens").click()
    waiting.until(
        lambda: (
            f"{len(run.target_tokens)} queries by {len(run.source_tokens)} keys"
            in tab.locator("[data-plot=cross] .lv-body").get_attribute("aria-label")
        )
    )


def test_a_run_whose_heads_have_masks_of_their_own_has_no_switches(translator: Translator) -> None:
    run = translator.translate(
        "one two", max_length=4, interventions=[do.mask("cross", forbid=[(0, 0)], layer=0)]
    )
    kinds = Opened(page(run)).run["kinds"]
    assert "readings" not in kinds["cross"]
    assert kinds["encoder"]["readings"]


def test_cells_say_what_keys_carried_and_did(opened: Open) -> None:
    model = load_translator(MODEL)
    run = model.translate("The house is old.")
    visitor = opened(page(run, model, measures=("carried", "effect")))
    tab = visitor.page
    head = (model.heads or {})["default"]["cross"]
    again = retrace(model, run)
    norms = carried(model.model, again, "cross", *head).norms
    whole = Window(0, len(run.target_tokens), 0, len(run.source_tokens))
    effects = effect_in(model, again, "cross", *head, whole)
    words = tab.get_by_role("button", name="Hide special tokens")
    for name, told in (
        ("Carried", f"length {norms[1, 2]:.3f}"),
        ("Effect", f"Δ log p {effects[1, 2]:+.3f} nats".replace("-", "−")),
        ("Weight", f"weight {run.weights('cross', *head)[1, 2]:.3f}"),
    ):
        tab.get_by_role("button", name=name, exact=True).click()
        over(visitor, "cross", 1, 2)
        waiting.until(lambda told=told: told in said(visitor))
        assert words.is_disabled() == (name != "Weight")


def test_switches_hold_of_both_runs_and_are_accessible(opened: Open) -> None:
    model = load_translator(MODEL)
    runs = [model.translate(text) for text in TEXTS]
    one = page(runs[0], model, beside=runs[1], measures=("carried",))
    tab: Any = opened(one, bypass_csp=True, color_scheme="dark", viewport=PHONE).page
    tab.get_by_role("button", name="Words").nth(1).click()
    for number, run in enumerate(runs):
        read = read_view(run.map("encoder", 0, 0), READINGS["words"])
        told = f"{len(read.rows)} queries by {len(read.columns)} keys"
        body = tab.locator("[data-plot=encoder] .lv-body").nth(number)
        waiting.until(lambda body=body, told=told: told in body.get_attribute("aria-label"))
    assert tab.evaluate("document.querySelector('.stMain').scrollWidth <= innerWidth")
    accessible(tab)
