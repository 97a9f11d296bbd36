"""The pages Positions and Recurrent: tables as the formula says, all twins, scores that add up."""

import shutil

import numpy as np
import pytest
from app_pages import PAGES, array, functions, named_charts, run
from nightly import thinned
from twins import write_recurrent, write_twins

from explorer.app.address.encodings import ENCODINGS
from explorer.app.sections.positions import together, twins_measured
from explorer.app.sections.positions.alone import turned
from explorer.app.server import models
from transformer.encodings import REGISTRY, sinusoidal_table

PAGE = "pages/positions.py"
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizer):
    return write_twins(write_recurrent(tmp_path_factory.mktemp("bundled"), tokenizer), tokenizer)


@pytest.fixture(autouse=True)
def bundled(folder, monkeypatch):
    monkeypatch.setattr(models, "BUNDLED", folder)


def words(at):
    return " ".join(each.value for each in (*at.markdown, *at.caption, *at.info))


@pytest.mark.parametrize("name", REGISTRY)
def test_every_encoding_is_explained_with_its_formula_and_what_was_measured(name):
    at = run(PAGE, encoding=name)
    assert at.latex
    probe = twins_measured()["probe"]["models"].get(name)
    if probe is not None:  # an encoding without a bundled twin has its formula alone
        assert f"R² = {probe['value']:.2f}" in words(at)
        assert named_charts(at) or ENCODINGS[name].acts == "nowhere"


def test_the_table_on_screen_is_the_formula_s_and_the_price_of_concatenating_follows_its_width():
    at = run(PAGE, d_model="12", base="100", positions="20")
    shown = array(named_charts(at)["table"]["data"][0]["z"])
    np.testing.assert_allclose(shown, sinusoidal_table(20, 12, 100).numpy(), atol=1e-6)
    assert "from 4 · 12² = 576 numbers to 4 · 24² = 2,304" in words(at)


def test_long_ranges_come_in_windows_that_are_never_pooled():
    at = run(PAGE, positions="4096", first="3001", d_model="8")
    shown = array(named_charts(at)["table"]["data"][0]["z"])
    np.testing.assert_allclose(shown, sinusoidal_table(4096, 8).numpy()[3000:3512], atol=1e-6)
    assert "positions 3001 to 3512" in words(at)
    products = named_charts(at)["products"]["data"][0]
    assert (products["x0"], products["y0"]) == (3001, 3001)


def test_a_full_turn_leaves_a_gap_and_no_line_that_falls_back():
    found = turned(np.radians([0, 150, 300, 450]))
    np.testing.assert_allclose(found, [0, 75, 150, 225, 300, np.nan, 90])


def test_without_twins_and_results_the_page_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(models, "BUNDLED", tmp_path)
    assert "There are no twins here" in words(run(PAGE, view="sentence"))
    assert "There is no model positions/rotary here" in words(run(PAGE, view="together"))
    for name in ("learned", "shaw", "t5"):
        assert "there is no model" in words(run(PAGE, encoding=name))
    for view in ("maps", "path"):
        assert run(RECURRENT, view=view).info


def test_a_twin_that_lacks_the_positions_says_so_and_the_others_go_on():
    at = run(PAGE, view="sentence", text="one " * 310, model="random")
    assert "shorten it to at most 300" in " ".join(map(str, at.dataframe[0].value["translation"]))


@pytest.mark.parametrize("name", ENCODINGS)
def test_beside_one_another_an_encoding_shows_whether_only_the_distance_counts(name: str):
    at = run(PAGE, view="together", encoding=name, beside="sinusoidal", word="one")
    drawn = named_charts(at)["together encoding"]["data"][0]
    scores = array(drawn["z"]).reshape(together.COUNT, together.COUNT)
    constant = max(float(np.ptp(scores.diagonal(distance))) for distance in range(-9, 10)) < 1e-3
    assert constant == (name in {"none", "shaw", "t5", "rotary", "alibi"})
    assert ("distance alone" in words(at)) == (constant and name != "none")
    assert ("bag of words" in words(at)) == (name == "none")
    both = [chart["data"][0]["zmax"] for chart in named_charts(at).values()]
    assert len(set(both)) == 1


def test_a_word_of_several_pieces_is_refused_with_their_number():
    at = run(PAGE, view="together", word="twelve three")
    assert words(at).count("pieces here; choose a word of one piece") == 2
    assert next(each.value for each in at.text_input if each.label == "The word") == "twelve"


# --- the page Recurrent, and every other page with a recurrent model -----------------------------

RECURRENT = "pages/recurrent.py"
TEXT = "one two three four five six"
SCORES = ("additive", "bilinear", "dot", "local")


def show(**params):
    return run(RECURRENT, **{"text": TEXT, **params})


@pytest.mark.parametrize("score", SCORES)
def test_both_maps_are_verified_and_the_score_adds_up(score):
    at = show(score=score)
    assert {"cross recurrent", "cross transformer"} <= set(named_charts(at))
    captions = [each.value for each in at.caption if "Cross\\-attention" in each.value]
    assert len(captions) == 2
    assert all("✓ verified" in caption for caption in captions)
    table = next(each.value for each in at.markdown if "sum = score" in each.value)
    rows = [
        line.strip("| ").split("|")[-1].strip(" *").replace("−", "-")
        for line in table.splitlines()[2:]
    ]
    *terms, total = map(float, rows)
    assert sum(terms) == pytest.approx(total, abs=0.01)
    assert f"Score **{total:.2f}**".replace("-", "−") in words(at)


@pytest.mark.parametrize("page", thinned([page for page in PAGES if page != RECURRENT], 2))
def test_every_page_opens_a_recurrent_model_or_says_what_it_lacks(page):
    at = run(page, model="recurrent/additive", text=TEXT)
    lacking = "whole_model masks training inside_a_head heads explanation encoder_self decoder_self"
    said = any("its only attention is" in each.value for each in at.info)
    assert said == any(name in page for name in lacking.split())
    if said and "training" not in page:  # nothing is drawn, so nothing can be saved
        assert "Export" not in [each.proto.popover.label for each in at.get("popover")]


@pytest.mark.parametrize("view", ["maps", "path"])
@pytest.mark.parametrize("params", [{"target": " "}, {"target": "\0"}, {"text": "one " * 1_100}])
def test_what_cannot_be_translated_is_said_in_one_sentence(view, params):
    assert len(show(view=view, **params).error) == 1


@pytest.mark.parametrize("view", ["maps", "path"])
def test_the_sentence_in_the_box_is_the_one_that_is_drawn_and_kept(view):
    at = run(RECURRENT, model=None, text=None, view=view)
    (typed,) = [field.value for field in at.text_input if field.label == "Sentence to translate"]
    assert at.session_state["state"].text == typed == "Yesterday I bought a new book."
    assert not any("sentences" in view.proto.json for view in at.get("bidi_component"))


def test_a_counterpart_is_the_same_token_and_the_aligned_one_first():
    counterpart = functions(RECURRENT)["counterpart"]
    assert counterpart(("a", "b", "a"), ("a", "x", "a"), 2) == 2
    assert counterpart(("a", "b"), ("x", "a"), 0) == 1
    assert counterpart(("a", "b"), ("a", "c"), 1) is None


@pytest.mark.parametrize("model", [None, "recurrent/other"])
def test_a_transformer_in_the_folder_is_no_recurrent_twin(folder, tmp_path, monkeypatch, model):
    shutil.copytree(folder, tmp_path / "models")
    shutil.copytree(
        folder / "positions" / "sinusoidal", tmp_path / "models" / "recurrent" / "other"
    )
    monkeypatch.setattr(models, "BUNDLED", tmp_path / "models")
    at = show(score="other", model=model)
    assert {"cross recurrent", "cross transformer"} <= set(named_charts(at))
    assert not any("other" in str(each.proto) for each in at.get("button_group"))
