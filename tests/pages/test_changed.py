"""The line about what is changed in a run: what it says, what it takes back, and where changes hold."""

import math
from types import SimpleNamespace

import pytest
from app_pages import LINKED, feeds, run, said, slots, view
from streamlit.testing.v1 import AppTest

from explorer.app.server import models
from explorer.app.server.examples import examples
from explorer.app.shell import changed
from transformer import Translator
from transformer import interventions as do

CHOSEN = do.write_text([do.choose(1, "▁drei")])
ABLATED = do.write_text([do.ablate("cross", 0, 0, "zero")])


def line(at: AppTest) -> list[str]:
    return [each.value for each in at.caption if "active" in each.value]


def written(at: AppTest) -> list[str]:
    return [chip["text"] for chip in feeds(at)["strips"]["target"]]


@pytest.mark.parametrize("page", LINKED)
def test_every_page_shows_the_run_with_another_token_and_says_so(page: str):
    at = run(page, changes=CHOSEN)
    (told,) = line(at)
    assert "1 change is active" in told
    assert at.button("changed.0").label == "step 2 writes “drei”"
    assert view(at)["trace"] != view(run(page))["trace"]


def test_the_translation_before_the_last_change_is_one_click_away():
    at = run(changes=f"{CHOSEN}~{ABLATED}")
    assert "2 changes are active" in line(at)[0]
    at.button("changed.back").click().run()
    assert at.query_params["changes"] == CHOSEN
    at.button("changed.back").click().run()
    assert "changes" not in at.query_params
    assert view(at)["trace"] == view(run())["trace"]


def test_a_new_sentence_starts_without_changes():
    at = run(changes=CHOSEN)
    at.text_input[0].set_value("one two").run()
    assert line(at) == []


@pytest.mark.parametrize("page", ["pages/whole_model.py", "pages/masks.py"])
def test_a_page_that_shows_the_model_itself_leaves_out_changes_of_its_arithmetic(page: str):
    at = run(page, changes=ABLATED)
    assert "the model's own arithmetic" in line(at)[0]


def test_inside_a_head_shows_the_run_in_which_another_head_is_changed():
    changed = {"model": "random", "text": "one two three four", "changes": ABLATED}
    at = run("pages/inside_a_head.py", **changed, cross="2.2")
    assert "the model's own arithmetic" not in line(at)[0]
    assert view(at)["trace"] == view(run("pages/cross_attention.py", **changed))["trace"]
    same = run("pages/inside_a_head.py", model="random", text="one two three four", cross="2.2")
    assert slots(at).keys() == slots(same).keys()
    assert "✗" not in str(slots(at))


def test_inside_a_head_that_is_itself_changed_says_so_and_shows_no_arithmetic():
    at = run("pages/inside_a_head.py", changes=ABLATED, cross="1.1")
    assert "This head is itself changed" in said(at)
    assert not slots(at)


@pytest.mark.parametrize("text", ["magic_1", "hide_two", "choose_x_y", "~~", "ablate_cross_1_1_rage"])
def test_changes_that_cannot_be_read_are_named(text: str):
    at = run(changes=text)
    assert "changes" in said(at)
    assert line(at) == []


def test_a_claim_about_an_example_is_made_for_the_model_as_it_is_only():
    text = examples(models.find("en-de"))[0].text
    assert feeds(run(model="en-de", text=text))["strips"]["claim"] is not None
    assert feeds(run(model="en-de", text=text, changes=ABLATED))["strips"]["claim"] is None


def test_a_line_that_leads_back_to_nothing_possible_is_left_out(monkeypatch: pytest.MonkeyPatch):
    translate = Translator.stream

    def only_both(self: Translator, *given: object, **more: object):
        if len(more.get("interventions", ())) == 1:
            raise do.InterventionError("This change needs the other one.")
        return translate(self, *given, **more)

    monkeypatch.setattr(Translator, "stream", only_both)
    at = run(text="two three", changes=f"{CHOSEN}~{ABLATED}")
    assert at.button("changed.0")
    assert "changed.back" not in [each.key for each in at.button]


def test_what_a_change_did_is_said_in_one_line():
    def step(token: str, token_id: int, share: float) -> SimpleNamespace:
        return SimpleNamespace(token=token, token_id=token_id, log_prob=math.log(share))

    before = SimpleNamespace(steps=[step("▁a", 1, 0.9), step("▁b", 2, 0.997)])
    same = SimpleNamespace(steps=[step("▁a", 1, 0.899), step("▁b", 2, 0.99)])
    other = SimpleNamespace(steps=[step("▁a", 1, 0.9), step("▁c", 3, 0.6)])
    assert changed.verdict(before, same) == "Translation unchanged; “b” 99.7 → 99.0\u00a0%."
    assert changed.verdict(before, before) == "Translation unchanged; “a” stays at 90.0\u00a0%."
    assert "at step 2, “b” became “**c**”" in changed.verdict(before, other)
    assert "another length" in changed.verdict(before, SimpleNamespace(steps=before.steps[:1]))


def test_a_refused_change_leaves_no_line_that_something_is_loading():
    params = {"model": "en-de", "text": "He lives here.", "changes": "mask_decoder_next"}
    page = run("pages/what_if.py", **params)
    (refused,) = page.error
    assert "later tokens do not exist yet" in refused.value
    assert not page.get("progress")
