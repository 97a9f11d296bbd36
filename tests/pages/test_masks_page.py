"""The page of masks without a browser: a known mask, what leaks, and a batch with its padding."""

import json
import re

import numpy as np
import pytest
from app_pages import array, run, words
from closed_form import CASES

PAGE = "pages/masks.py"


def drawn(at: object, words: str) -> dict:
    """The figure whose alternative text holds some words."""
    charts = (each.proto for each in at.get("plotly_chart"))  # type: ignore[attr-defined]
    return json.loads(next(each.spec for each in charts if words in each.alt))


@pytest.mark.parametrize("name", CASES)
def test_the_zeros_of_a_known_causal_mask_are_counted(name: str):
    at = run(PAGE, model=name, text=CASES[name].sentence)
    size = len(CASES[name].target_tokens)
    masked = size * (size - 1) // 2
    assert f"{masked} of {size * size} cells are masked" in words(at)
    zeros = re.search(rf"(\d+) of {size * size} weights are exactly 0", words(at))
    assert zeros is not None
    assert int(zeros[1]) >= masked
    assert "every row sums to 1" in words(at)


def test_one_sentence_alone_has_no_padding():
    at = run(PAGE, kind="encoder")
    assert "a sentence alone has no padding" in words(at)


@pytest.mark.parametrize("name", CASES)
def test_a_score_of_zero_leaks_and_the_last_row_says_how_much(name: str):
    at = run(PAGE, model=name, text=CASES[name].sentence, mask="zero", decoder="1.1")
    assert "Every row still sums to 1" in words(at)
    what_if, true = drawn(at, "What if: 0 before the softmax"), drawn(at, "Weights, after mask and softmax")
    size = len(CASES[name].target_tokens)
    later = ~np.tri(size, dtype=bool)
    weights, own = (array(each["data"][0]["customdata"])[..., 0] for each in (what_if, true))
    assert weights[0, 1:] == pytest.approx(weights[0, 1])
    assert weights[0, 1] > 0
    assert weights.sum(-1) == pytest.approx(1, abs=1e-5)
    assert (own[later] == 0).all()
    keys = CASES[name].keys("decoder", 0)
    assert all(own[row, key] > 0.99 for row, key in enumerate(keys))


def test_with_ordinary_scores_much_leaks_where_little_is_visible():
    at = run(PAGE, model="random", text="one two three four", mask="zero")
    weights = array(drawn(at, "What if: 0 before the softmax")["data"][0]["customdata"])[..., 0]
    share = weights[0, 1:].sum()
    assert share > 0.2
    assert re.search(
        rf"the first row .* loses \*\*{share:.2f}\*\*, .*the last row .* loses \*\*0.00\*\*", words(at)
    )


def test_zeros_after_the_softmax_make_rows_fall_short():
    at = run(PAGE, mask="after", model="random", text="one two three four")
    assert "rows no longer sum to 1" in words(at)


def test_a_batch_shows_the_padding_of_each_sentence():
    at = run(PAGE, view="batch", sentences="one two\nnine ten eight six five", member="1", kind="cross")
    assert "2 sentences × 6 tokens make a rectangle of 12 positions; 3 of them" in words(at)
    assert "6 × 6 cells, 18 masked" in words(at)
    cells = array(drawn(at, "Padding mask of the encoder")["data"][0]["z"])
    assert np.array_equal(cells, np.tile(np.where(np.arange(6) < 3, 90, 0), (6, 1)))
    assert drawn(at, "Causal and padding combined")
    assert "none of them in rows of tokens" in words(at)


def test_a_batch_takes_at_most_six_sentences_and_keeps_them_in_the_address():
    at = run(PAGE, view="batch")
    at.text_area[0].set_value("\n".join(["one two"] * 8)).run()
    assert not at.exception
    assert at.query_params["sentences"] in ("\n".join(["one two"] * 6), ["\n".join(["one two"] * 6)])
    assert "6 sentences ×" in words(at)


def test_a_sentence_that_is_too_long_for_a_batch_is_named():
    at = run(PAGE, model="random", view="batch", sentences="one two\n" + "one " * 200)
    assert "at most 128" in " ".join(each.value for each in at.error).replace("\\", "")


def test_a_batch_of_blank_lines_is_the_usual_one():
    at = run(PAGE, model="random", text="one two", view="batch", sentences=" \n ")
    assert not at.error
    assert "3 sentences ×" in words(at)


def test_a_member_beyond_the_batch_becomes_the_last():
    at = run(PAGE, view="batch", sentences="one\ntwo three", member="9")
    assert "sentence 2 of the batch" in words(at)


def test_a_long_text_is_drawn_in_windows_that_say_so():
    text = " ".join(["one two three four five six eight nine ten"] * 12)
    at = run(PAGE, model="random", text=text, mask="zero", step="90")
    assert "queries " in words(at)
    assert sum(len(each.proto.spec) for each in at.get("plotly_chart")) < 1_000_000


def test_both_conventions_of_the_triangle_and_the_shift_are_told():
    told = words(run(PAGE))
    assert "*j* > *i* are masked, the upper triangle" in told
    assert "*i* > *j* are masked: the lower triangle" in told
    assert "*shifted right*" in told


def test_the_upper_triangle_is_masked_as_the_text_says():
    mask = array(drawn(run(PAGE), " · The mask ")["data"][0]["z"])
    assert (mask[np.triu_indices(len(mask), 1)] == 0).all()
    assert (mask[np.tril_indices(len(mask))] > 0).all()
