"""The page of positions without a browser: tables as the formula says, all twins, results as measured."""

import re

import numpy as np
import pytest
from app_pages import array, named_charts, run
from twins import write_twins

from explorer.app.address.encodings import ENCODINGS
from explorer.app.sections.positions import together
from explorer.app.sections.positions.alone import turned
from explorer.app.server import catalogue, measured
from explorer.app.server.catalogue import twin_title as title
from transformer import load_translator
from transformer.encodings import REGISTRY, sinusoidal_table

PAGE = "pages/positions.py"
ADDED = {name for name, each in ENCODINGS.items() if each.acts == "embeddings"}
"""Encodings of absolute places."""
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizer):
    return write_twins(tmp_path_factory.mktemp("bundled"), tokenizer)


@pytest.fixture(autouse=True)
def bundled(folder, monkeypatch):
    monkeypatch.setattr(catalogue, "BUNDLED", folder)


def bars(drawn):
    """What a plot of dots shows, by name."""
    return dict(zip(drawn["layout"]["yaxis"]["ticktext"], drawn["data"][0]["x"], strict=True))


def words(at):
    return " ".join(each.value for each in (*at.markdown, *at.caption, *at.info))


@pytest.mark.parametrize("name", REGISTRY)
def test_every_encoding_is_explained_with_its_formula_and_what_was_measured(name):
    at = run(PAGE, encoding=name)
    assert at.latex
    probe = measured.shipped(measured.POSITIONS)["probe"]["models"].get(name)
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


def test_the_linear_map_is_held_against_all_positions_in_both_precisions():
    at = run(PAGE, positions="4096", offset="17")
    found = words(at).replace("\\", "")
    assert "moves every position by 17" in found
    assert "4,079 positions" in found
    plain = found.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")).replace(" × 10", "e")
    errors = re.search(r"dimensions: (\S+) in float64, (\S+) with", plain)
    double, single = map(float, errors.groups())
    assert double <= 1e-9
    assert single <= 1e-6


def test_a_full_turn_leaves_a_gap_and_no_line_that_falls_back():
    found = turned(np.radians([0, 150, 300, 450]))
    np.testing.assert_allclose(found, [0, 75, 150, 225, 300, np.nan, 90])


def test_all_twins_show_the_chosen_head_and_only_absolute_positions_notice_a_move():
    text = "one two three four"
    at = run(PAGE, view="sentence", text=text, twin_head="2.3", swap="1.3", offset="9")
    drawn = named_charts(at)
    assert list(at.dataframe[0].value["twin"]) == list(map(title, REGISTRY))
    assert words(at).count("verified") > len(REGISTRY)
    for name in REGISTRY:
        twin = load_translator(catalogue.twins()[f"positions/{name}"])
        expected = twin.translate(text).attention.weights("encoder", 1, 2)
        shown = array(drawn[f"map-{name}"]["data"][0]["customdata"])[..., 0]
        np.testing.assert_allclose(shown, expected, atol=1e-5)
    swap, move = bars(drawn["swap"]), bars(drawn["shift"])
    assert swap["none"] < 1e-4
    assert min(value for name, value in swap.items() if name != "none") > 1e-3
    assert {name for name, value in move.items() if value > 1e-3} == ADDED


def test_without_twins_and_results_the_page_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(catalogue, "BUNDLED", tmp_path)
    assert "There are no twins here" in words(run(PAGE, view="sentence"))
    assert "There is no model positions/rotary here" in words(run(PAGE, view="together"))
    for name in ("learned", "shaw", "t5"):
        assert "there is no model" in words(run(PAGE, encoding=name))


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
    both = [each["data"][0]["zmax"] for each in named_charts(at).values()]
    assert len(set(both)) == 1


def test_a_word_of_several_pieces_is_refused_with_their_number():
    at = run(PAGE, view="together", word="twelve three")
    assert words(at).count("pieces here; choose a word of one piece") == 2
    assert next(each.value for each in at.text_input if each.label == "The word") == "twelve"
