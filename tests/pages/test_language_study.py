"""The study sections of the page Language model: what was measured and ships, and what is computed now."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from app_pages import charts, run, said, words
from streamlit.testing.v1 import AppTest

from lab.language.inducing import random_pieces
from transformer.storage.description import LANGUAGE_FILE
from transformer.storage.marks import measured
from ui.server import catalogue
from ui.server.language import live
from ui.views.language_model.study import induction, space

PAGE = "pages/language_model.py"
MODEL = "language/lm-en"


@pytest.fixture
def study() -> dict[str, Any]:
    found = measured(catalogue.directory(MODEL), LANGUAGE_FILE)
    assert found is not None
    return found


def opened(view: str, **params: str) -> AppTest:
    return run(PAGE, **{"model": MODEL, "view": view, **params})


@pytest.mark.parametrize("view", ["induction", "space"])
def test_a_model_without_measurements_says_how_to_make_them(view: str):
    at = run(PAGE, model="language/writer", view=view)
    assert "python -m lab language" in said(at)


def test_the_sentence_about_induction_has_the_numbers_of_the_file(study: dict[str, Any]):
    found = study["induction"]
    layer, head = found["ablations"][0]["heads"][0]
    told = words(opened("induction"))
    assert f"head {head + 1} of layer {layer + 1}" in told
    assert f"{found['copying']['gain']['value']:.2f} nats" in told
    assert f"{found['ablations'][0]['copies']['cost']['value']:+.2f} nats" in told


def test_the_tiles_hold_the_scores_and_the_map_is_the_chosen_head_s(study: dict[str, Any]):
    at = opened("induction", decoder="3.4", seed="5")
    first = charts(at)[0]
    assert first["layout"]["shapes"][0]["x0"] == 2.5
    assert "head 4 of layer 3" in words(at)
    scores = np.array(study["induction"]["scores"]["induction"])
    assert len(first["data"][1]["customdata"]) == scores.size


def test_the_head_that_the_text_names_opens_whatever_was_looked_at_in_another_section(study: dict[str, Any]):
    at = opened("surprisal", decoder="1.1")
    next(each for each in at.segmented_control if each.label == "View").set_value("induction").run()
    layer, head = study["induction"]["ablations"][0]["heads"][0]
    shapes = charts(at)[0]["layout"]["shapes"]
    assert (shapes[0]["x0"], shapes[0]["y0"]) == (head - 0.5, layer - 0.5)


def test_a_head_that_the_model_lacks_moves_to_the_nearest():
    assert "head 8 of layer 4" in words(opened("induction", decoder="9.9"))


def test_other_pieces_are_another_sequence_in_the_address():
    at = opened("induction", seed="3")
    next(each for each in at.button if each.label == "Other pieces").click().run()
    assert not at.exception
    assert at.query_params["seed"] in ("4", ["4"])


def test_the_framed_cells_are_right_after_the_same_token_s_earlier_place():
    found = live.repetition(MODEL, 1)
    rows, keys = np.nonzero(found.followers)
    read = found.run.decoder_input_tokens
    assert [read[key - 1] for key in keys] == [read[row] for row in rows]
    assert found.again.sum() == live.LENGTH == len(rows)
    sequence = random_pieces(catalogue.writer(MODEL).generator, live.LENGTH, 1, 1)
    assert tuple(sequence.ids[0, 1:].tolist()) == found.run.target_ids[:-1]


def test_the_map_shows_the_step_and_the_word_of_the_address(study: dict[str, Any]):
    found = study["words"]
    word, step = found["words"][7], found["steps"][3]
    told = words(opened("space", word=word, snapshot=str(step)))
    assert f"step {step:,}" in told
    assert all(found["names"][i] in told for i in found["company"][7])


def test_neighbours_are_bold_if_they_are_near_in_both_ways(study: dict[str, Any]):
    found = study["words"]
    at, word = len(found["steps"]) - 1, 0
    table = space.neighbours_table(found, at, word)
    common = set(found["neighbours"][at][word]) & set(found["company"][word])
    assert table.count("**") == 4 * len(common)


@pytest.mark.parametrize("word", ["zebrafish", "<b>", "x" * 200])
def test_an_unknown_word_opens_the_first_one(word: str, study: dict[str, Any]):
    shown = next(each for each in opened("space", word=word).selectbox if each.label == "Word")
    assert shown.value == study["words"]["words"][0]


def test_the_page_says_what_switching_off_does_not_show():
    told = words(opened("induction"))
    assert "shares a rare word" in told
    assert "not that it needs the pattern" in told


def test_a_model_without_induction_heads_is_said_to_have_none(study: dict[str, Any]):
    found = study["induction"]
    assert "no induction heads" not in induction.told(found)
    scores = found["scores"] | {"induction": np.zeros((4, 8)).tolist()}
    gain = {"gain": {"value": 0.0, "low": -0.1, "high": 0.1}}
    told = induction.told(found | {"scores": scores, "copying": gain})
    assert "no induction heads" in told
    assert "no less than the first time" in told


def test_tables_for_csv_hold_every_number(study: dict[str, Any]):
    found = study["induction"]
    assert len(induction.scores_table(found)) == 1 + np.size(found["scores"]["induction"])
    assert len(space.points_table(study["words"])) == 1 + np.array(study["words"]["points"])[..., 0].size
    rows = induction.costs_table(found, "copies")
    assert len(rows) == 1 + sum(1 + len(each["copies"]["controls"]) for each in found["ablations"])
