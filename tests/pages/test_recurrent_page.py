"""The page Recurrent without a browser, and every other page with a recurrent model."""

import re
import shutil

import pytest
from app_pages import PAGES, functions, named_charts, run
from nightly import thinned
from recurrent_twins import write_recurrent

from explorer.app.server import catalogue

PAGE = "pages/recurrent.py"
TEXT = "one two three four five six"
SHIPPED = catalogue.BUNDLED
SCORES = ("additive", "bilinear", "dot", "local")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizer):
    return write_recurrent(tmp_path_factory.mktemp("bundled"), tokenizer)


@pytest.fixture(autouse=True)
def bundled(folder, monkeypatch):
    monkeypatch.setattr(catalogue, "BUNDLED", folder)


def words(at):
    return " ".join(each.value for each in (*at.markdown, *at.caption, *at.info))


def show(**params):
    return run(PAGE, **{"text": TEXT, **params})


@pytest.mark.parametrize("score", SCORES)
def test_both_maps_are_verified_and_the_score_adds_up(score):
    at = show(score=score)
    assert {"cross recurrent", "cross transformer"} <= set(named_charts(at))
    captions = [each.value for each in at.caption if "Cross\\-attention" in each.value]
    assert len(captions) == 2
    assert all("✓ verified" in each for each in captions)
    table = next(each.value for each in at.markdown if "sum = score" in each.value)
    rows = [line.strip("| ").split("|")[-1].strip(" *").replace("−", "-") for line in table.splitlines()[2:]]
    *terms, total = map(float, rows)
    assert sum(terms) == pytest.approx(total, abs=0.01)
    assert f"Score **{total:.2f}**".replace("-", "−") in words(at)


def test_the_steps_of_the_sentence_are_counted():
    told = words(show(view="path"))
    count = int(re.search(r"To read all (\d+) tokens", told)[1])
    assert f"**{count - 1} steps**" in told
    assert "**1 step**" in told
    assert "**1 step**; in self" in words(show(view="path", source="2"))


@pytest.mark.parametrize("view", [None, "path"])
def test_without_models_and_measurements_the_page_says_what_is_missing(view, tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue, "BUNDLED", tmp_path)
    at = run(PAGE, **({} if view is None else {"view": view}))
    assert at.info


@pytest.mark.parametrize("page", thinned([page for page in PAGES if page != PAGE], 2))
def test_every_page_opens_a_recurrent_model_or_says_what_it_lacks(page):
    at = run(page, model="recurrent/additive", text=TEXT)
    assert not at.exception, page
    lacking = {
        "whole_model",
        "masks",
        "training",
        "inside_a_head",
        "heads",
        "explanation",
        "encoder_self_attention",
        "decoder_self_attention",
    }
    said = any("its only attention is" in each.value for each in at.info)
    assert said == any(name in page for name in lacking)
    if said and "training" not in page:  # nothing is drawn, so nothing can be saved
        assert "Export" not in [each.proto.popover.label for each in at.get("popover")]


@pytest.mark.parametrize("view", ["maps", "path"])
@pytest.mark.parametrize("params", [{"target": " "}, {"target": "\0"}, {"text": "one " * 1_100}])
def test_what_cannot_be_translated_is_said_in_one_sentence(view, params):
    assert len(show(view=view, **params).error) == 1


def test_a_counterpart_is_the_same_token_and_the_aligned_one_first():
    counterpart = functions(PAGE)["counterpart"]
    assert counterpart(("a", "b", "a"), ("a", "x", "a"), 2) == 2
    assert counterpart(("a", "b"), ("x", "a"), 0) == 1
    assert counterpart(("a", "b"), ("a", "c"), 1) is None


@pytest.mark.parametrize("model", [None, "recurrent/other"])
def test_a_transformer_in_the_folder_is_no_recurrent_twin(folder, tmp_path, monkeypatch, model):
    shutil.copytree(folder, tmp_path / "models")
    shutil.copytree(folder / "positions" / "sinusoidal", tmp_path / "models" / "recurrent" / "other")
    monkeypatch.setattr(catalogue, "BUNDLED", tmp_path / "models")
    at = show(score="other", model=model)
    assert {"cross recurrent", "cross transformer"} <= set(named_charts(at))
    assert not any("other" in str(each.proto) for each in at.get("button_group"))
