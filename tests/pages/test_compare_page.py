"""The page of comparisons without a browser: known differences, controls, texts that differ, the
address."""

from functools import partial

import app_pages
import numpy as np
import pytest
from app_pages import array, charts, framed_rows
from closed_form import CASES

from explorer.app.server import models
from transformer import interventions as do

run = partial(app_pages.run, "pages/what_if.py", view="compare")
COPY = {"model": "copy", "text": CASES["copy"].sentence}
RANDOM = {"model": "random", "text": "one two"}
OFF = do.write_text([do.ablate("cross", 0, 0, "zero")])
NO_DIFFERENCE = "no difference"


def words(at: object) -> str:
    told = " ".join(each.value for each in (*at.markdown, *at.caption))  # type: ignore[attr-defined]
    return told.replace("\\", "").replace("**", "")


def shown(at: object, number: int) -> np.ndarray:
    """The weights of one of the two maps."""
    return array(charts(at)[number]["data"][0]["customdata"])[..., 0]


def box(at: object, label: str):
    return next(each for each in at.selectbox if each.label == label)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "kind"), [*zip(CASES, ("encoder", "decoder", "cross"), strict=True)]
)
def test_two_known_heads_give_their_known_difference(name: str, kind: str):
    case = CASES[name]
    at = run(model=name, text=case.sentence, kind=kind, against="head-1.2", **{kind: "1.1"})
    known = case.weights(kind, 0) - case.weights(kind, 1)
    assert array(charts(at)[2]["data"][0]["z"]) == pytest.approx(known, abs=0.02)
    assert "A (head 1 of layer 1) against B (head 2 of layer 1)" in words(at)
    assert box(at, "The other head").options[:2] == ["head 1 of layer 1", "head 2 of layer 1"]
    assert f"the rows are {np.abs(known).sum(-1).mean() / 2:.2f} apart" in words(at)
    assert "difference of the two maps above" in words(at)


def test_uniform_attention_is_a_formula_and_respects_the_mask():
    at = run(cross="1.1")
    size = len(CASES["copy"].source_tokens)
    assert shown(at, 1) == pytest.approx(1 / size)
    assert array(charts(at)[1]["data"][0]["customdata"]).shape[-1] == 1, "a formula has no scores"
    known = CASES["copy"].weights("cross", 0) - 1 / size
    assert array(charts(at)[2]["data"][0]["z"]) == pytest.approx(known, abs=0.02)
    assert "a formula, 1 / visible keys: no model computed this" in words(at)
    assert f"the rows are {1 - 1 / size:.2f} apart" in words(at)
    masked = shown(run(kind="decoder"), 1)
    assert masked == pytest.approx(np.tri(len(masked)) / np.arange(1, len(masked) + 1)[:, None])


SAME_ENCODER = "The encoder reads the source alone"


SAME = CASES["copy"].translation
TOLD: list[tuple[dict[str, str], str, bool]] = [
    ({"against": "untrained-3"}, "B (untrained twin, seed 3)", True),
    (COPY | {"against": "model-reverse", "cross": "1.1"}, "A (copy) against B (reverse)", True),
    (COPY | {"against": "model-reverse"}, f"A: {SAME}", True),
    ({"against": "forced", "other": "vier drei"}, "B: vier drei", True),
    ({"against": "forced", "other": SAME}, "A and B are the same output", False),
    (COPY | {"against": "forced", "kind": "encoder"}, SAME_ENCODER, False),
    (COPY | {"against": "head-1.1", "cross": "1.1"}, "A and B are the same head", False),
    (COPY | {"against": "model-copy"}, "A and B are the same model", False),
    (COPY | {"against": "sentence", "other": COPY["text"]}, "A and B are the same sentence", False),
    (
        COPY | {"against": "unchanged", "kind": "encoder", "changes": OFF},
        "No change reaches the",
        False,
    ),
    ({"against": "unchanged"}, "Nothing is changed, so A and B are the same run.", False),
    (
        RANDOM | {"against": "head-9.1", "cross": "1.1"},
        "This model has 3 layers of 4 heads; cross",
        True,
    ),
    (RANDOM | {"against": "sentence", "other": "nine ten"}, "B: The output was cut at", True),
]


@pytest.mark.parametrize(("params", "told", "differs"), TOLD, ids=str)
def test_an_address_is_told_what_it_compares_and_why_nothing_differs(
    params, told: str, differs: bool
):
    at = run(**params)
    assert not at.error
    assert told in words(at)
    assert (NO_DIFFERENCE in words(at)) != differs
    assert not (SAME_ENCODER in words(at) and "the same translation" in words(at)), "told once"
    if params["against"].startswith("untrained"):
        assert words(at).count("✓ verified") == 2


def test_a_sentence_with_one_word_more_has_a_column_that_is_never_differenced():
    texts = {"text": "one two four stop", "other": "one two three four stop"}
    at = run(model="copy", **texts, against="sentence", kind="encoder")
    difference = charts(at)[2]
    place = list(difference["layout"]["xaxis"]["ticktext"]).index("B: three")
    assert (array(difference["data"][0]["z"])[:, place] == 0).all()
    assert "Rows and columns that only one side has are left out: 2." in words(at)
    assert any(trace.get("fillpattern") for trace in difference["data"])
    texts = {"text": "one two three stop", "other": "one two stop", "source": "3"}
    told = words(run(model="copy", **texts, against="sentence", kind="encoder"))
    assert "The row of the cursor, “A: three”, is on side A only." in told


def test_the_row_of_the_cursor_is_told_framed_and_moved():
    case = CASES["copy"]
    at = run(**COPY, cross="1.1", against="head-1.2", step="2")
    for side, head in (("A", 0), ("B", 1)):
        key = case.source_tokens[case.weights("cross", head)[1].argmax()].removeprefix("▁")
        assert f"{side} puts most weight on “{key}”" in words(at)
    assert framed_rows(at) == {"compare-A": 1, "compare-B": 1, "compare-difference": 1}
    box(at, "Row of the cursor").select_index(3).run()
    assert at.query_params["step"] in ("4", ["4"])
    assert framed_rows(at)["compare-difference"] == 3
    drawn = models.find("random").load().translate(RANDOM["text"])
    apart = np.abs(drawn.weights("cross", 0, 0) - drawn.weights("cross", 0, 1)).sum(-1) / 2
    at = run(**RANDOM, cross="1.1", against="head-1.2", step="3")
    assert f"A and B are {apart[2]:.2f} apart: A puts" in words(at)


@pytest.mark.parametrize(
    ("against", "text"),
    [("forced", "."), ("sentence", "."), ("untrained-1", "one"), ("model-reverse", "one")],
)
def test_texts_of_one_token_are_compared(text: str, against: str):
    at = run(model="copy", text="one", against=against, other=text)
    assert not at.error
    assert len(charts(at)) == 3
    assert len(run(against="model-../x").error) == 1, "an unknown model gets one sentence"


def test_a_changed_run_stands_against_the_run_without_changes_which_is_else_not_offered():
    changes = do.write_text([do.scale("encoder", 0, 0, 0.0), do.hide(1)])
    at = run(
        model="random", text="one two three four", changes=changes, cross="3.3", against="unchanged"
    )
    base = models.find("random").load().translate("one two three four")
    assert shown(at, 1) == pytest.approx(base.weights("cross", 2, 2), abs=1e-3)
    assert shown(at, 0)[:, 1] == pytest.approx(0), "the hidden word"
    assert "A (changed) against B (as it is)" in words(at)
    assert "verified, with 2 changes" in words(at)
    named = "against the run without changes"
    assert named in box(at, "Compare with").options
    assert named not in box(run(), "Compare with").options
