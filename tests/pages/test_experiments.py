"""Questions to start from: each links to changes that the model can be asked with."""

from urllib.parse import parse_qs

import pytest
from app_pages import ROOT, run, words
from streamlit.testing.v1 import AppTest

from explorer.app.server import models
from explorer.lenses.what_if.experiments import EXPERIMENTS
from transformer import interventions as do

PAGE = "pages/what_if.py"
bundled = pytest.mark.skipif(
    not (ROOT / "assets/models/en-de/model.safetensors").exists(), reason="the bundled model is not here"
)


def addresses(at: AppTest) -> list[dict[str, str]]:
    """The parameters of every card's links, in the order of the page."""
    found = [parse_qs(each.proto.query_string) for each in at.get("page_link")]
    return [{name: value for name, (value,) in each.items()} for each in found if "changes" in each]


@bundled
@pytest.mark.parametrize("each", EXPERIMENTS, ids=lambda each: each.name)
def test_the_address_of_a_card_asks_the_model_and_shows_its_answer(each):
    translator = models.find("en-de").translator()
    variants, target = each.put(translator, models.find("en-de").heads)
    written = [do.write_text(changes) for changes in variants.values()]
    linked = addresses(run(PAGE, model="en-de"))
    known = [link for link in linked if link["text"] == each.text and link["changes"] in written]
    assert [link["changes"] for link in known] == written
    at = run(PAGE, **known[-1])
    assert not at.exception
    assert not at.error
    told = words(at).replace("\\", "")
    assert each.question in told
    assert each.not_proved in told
    assert at.query_params.get("target") == target
    base = translator.translate(each.text).text
    assert base.rstrip(".") in told.replace("*", "").replace("\u2060", "")


def test_a_model_without_measured_heads_is_not_asked():
    assert not addresses(run(PAGE, model="copy"))
