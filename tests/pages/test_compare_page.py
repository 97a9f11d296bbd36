"""The page of comparisons without a browser: known differences, controls, texts that differ, the address."""

from __future__ import annotations

import json
from functools import partial

import app_pages
import numpy as np
import pytest
from app_pages import array, charts, framed_rows
from closed_form import CASES

from explorer.app.server import catalogue, models
from explorer.lenses.measures.carried import carried
from explorer.lenses.measures.maps import shares
from explorer.lenses.words.groups import reading_groups
from transformer import Capture, load_translator
from transformer import interventions as do

run = partial(app_pages.run, "pages/what_if.py", view="compare")


def words(at: object) -> str:
    return " ".join(each.value for each in (*at.markdown, *at.caption)).replace("\\", "")  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_two_known_heads_give_their_known_difference(name: str, kind: str):
    case = CASES[name]
    at = run(model=name, text=case.sentence, kind=kind, against="head-1.2", **{kind: "1.1"})
    known = case.weights(kind, 0) - case.weights(kind, 1)
    assert array(charts(at)[2]["data"][0]["z"]) == pytest.approx(known, abs=0.02)
    assert "A (head 1 of layer 1) against B (head 2 of layer 1)" in words(at).replace("**", "")
    distance = np.abs(known).sum(-1).mean() / 2
    assert f"the rows are **{distance:.2f}** apart" in words(at)
    assert "difference of the two maps above" in words(at)


def test_a_head_against_uniform_attention_says_that_it_is_a_formula():
    at = run(cross="1.1")
    size = len(CASES["copy"].source_tokens)
    _, uniform, difference = charts(at)
    assert array(uniform["data"][0]["customdata"])[..., 0] == pytest.approx(1 / size)
    assert array(uniform["data"][0]["customdata"]).shape[-1] == 1, "a formula has no scores"
    known = CASES["copy"].weights("cross", 0) - 1 / size
    assert array(difference["data"][0]["z"]) == pytest.approx(known, abs=0.02)
    assert "a formula, 1 / visible keys: no model computed this" in words(at)
    assert f"the rows are **{1 - 1 / size:.2f}** apart" in words(at)


def test_uniform_attention_respects_the_mask():
    uniform = array(charts(run(kind="decoder"))[1]["data"][0]["customdata"])[..., 0]
    rows = len(uniform)
    assert uniform == pytest.approx(np.tri(rows) / np.arange(1, rows + 1)[:, None])


def test_an_untrained_twin_is_labelled_and_verified():
    at = run(against="untrained-3")
    assert "untrained twin, seed 3" in words(at)
    assert words(at).count("✓ verified") == 2


def test_copy_against_reverse_aligns_what_they_share():
    at = run(model="copy", text=CASES["copy"].sentence, against="model-reverse", cross="1.1")
    assert "A (copy) against B (reverse)" in words(at).replace("**", "")
    assert f"A: {CASES['copy'].translation}" in words(at)


def test_a_sentence_with_one_word_more_has_a_column_that_is_never_differenced():
    at = run(
        model="copy",
        text="one two four stop",
        other="one two three four stop",
        against="sentence",
        kind="encoder",
    )
    difference = charts(at)[2]
    assert "B: three" in difference["layout"]["xaxis"]["ticktext"]
    place = difference["layout"]["xaxis"]["ticktext"].index("B: three")
    assert (array(difference["data"][0]["z"])[:, place] == 0).all()
    assert "Rows and columns that only one side has are left out: 2." in words(at)
    assert any(trace.get("fillpattern") for trace in difference["data"])


def test_the_row_of_the_cursor_is_told_framed_and_moved():
    case = CASES["copy"]
    at = run(model="copy", text=case.sentence, cross="1.1", against="head-1.2", step="2")
    known = case.weights("cross", 0)[1], case.weights("cross", 1)[1]
    told = [
        f"{side} puts most weight on “{case.source_tokens[row.argmax()].removeprefix('▁')}”"
        for side, row in zip("AB", known, strict=True)
    ]
    assert all(each in words(at) for each in told)
    assert framed_rows(at) == {"compare-A": 1, "compare-B": 1, "compare-difference": 1}
    next(each for each in at.selectbox if each.label == "Row of the cursor").select_index(3).run()
    assert at.query_params["step"] in ("4", ["4"])
    assert framed_rows(at)["compare-difference"] == 3


def test_a_row_of_the_cursor_that_the_other_side_lacks_is_named():
    at = run(
        model="copy",
        text="one two three stop",
        other="one two stop",
        against="sentence",
        kind="encoder",
        source="3",
    )
    assert "The row of the cursor, “A: three”, is on side A only." in words(at)


def test_cells_of_both_sides_and_of_the_difference_are_drawn_at_one_height_and_size():
    layouts = [spec["layout"] for spec in charts(run(cross="1.1"))]
    edges = [(each["margin"]["t"], each["height"] - each["margin"]["b"]) for each in layouts]
    wide = [each["width"] - each["margin"]["l"] - each["margin"]["r"] for each in layouts]
    assert len(set(edges)) == len(set(wide)) == 1


def test_a_translation_against_itself_does_not_differ():
    at = run(against="decode-greedy")
    assert "no difference" in words(at)


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"against": "decode-beam-4", "kind": "encoder"}, "The encoder reads the source alone"),
        ({"against": "head-1.1", "cross": "1.1"}, "A and B are the same head"),
        ({"against": "model-copy"}, "A and B are the same model"),
        ({"against": "sentence", "other": CASES["copy"].sentence}, "A and B are the same sentence"),
        (
            {
                "against": "unchanged",
                "kind": "encoder",
                "changes": do.write_text([do.ablate("cross", 0, 0, "zero")]),
            },
            "No change reaches the weights of this head",
        ),
    ],
)
def test_an_empty_difference_says_why(params: dict[str, str], why: str):
    at = run(model="copy", text=CASES["copy"].sentence, **params)
    assert "no difference" in words(at)
    assert why in words(at)


@pytest.mark.parametrize("mode", ["decode", "forced"])
def test_every_way_of_comparing_opens_on_something_that_differs(mode: str):
    at = run(model="random", text="one two three")
    next(each for each in at.selectbox if each.label == "Compare with").select(mode).run()
    assert not at.exception
    assert "no difference" not in words(at)
    assert "A and B are the same translation" not in words(at)
    lines = next(each.value for each in at.markdown if each.value.startswith("A: ")).splitlines()
    assert lines[0].removeprefix("A: ").strip() != lines[1].removeprefix("B: ").strip()


@pytest.mark.parametrize("mode", ["decode-beam-4", "forced"])
def test_an_encoder_that_cannot_differ_is_told_about_once(mode: str):
    told = words(run(against=mode, kind="encoder"))
    assert "The encoder reads the source alone" in told
    assert "A and B are the same translation" not in told


def test_a_model_that_always_writes_the_same_is_said_to():
    at = run(against="decode-beam-4")
    assert "A and B are the same translation" in words(at)


def test_a_translation_of_your_own_is_forced():
    at = run(against="forced", other="vier drei")
    assert "B: vier drei" in words(at)


def test_choosing_another_way_of_comparing_is_in_the_address():
    at = run(model="random", text="one two")
    mode = next(each for each in at.selectbox if each.label == "Compare with")
    mode.select("head").run()
    assert at.query_params["against"] in ("head-3.2", ["head-3.2"], "head-3.4", ["head-3.4"])
    assert not at.exception


def test_an_unknown_model_gets_one_sentence():
    at = run(against="model-../x")
    assert len(at.error) == 1


def test_a_head_that_is_not_there_becomes_the_nearest_and_the_page_says_so():
    at = run(model="random", text="one two", against="head-9.1", cross="1.1")
    assert "B: This model has 3 layers of 4 heads; cross shows head 1 of layer 3." in words(at)


def test_what_was_cut_on_the_other_side_is_told():
    at = run(model="random", text="one two", against="sentence", other="nine ten")
    assert "B: The output was cut at" in words(at)


@pytest.mark.parametrize("text", ["one", "."])
@pytest.mark.parametrize("against", ["forced", "sentence", "untrained-1", "model-reverse"])
def test_texts_of_one_token_are_compared(text: str, against: str):
    at = run(model="copy", text="one", against=against, other=text)
    assert not at.error
    assert len(charts(at)) == 3


@pytest.mark.parametrize("against", ["uniform", "sentence"])
def test_long_texts_are_compared_whole_and_drawn_in_windows(against: str):
    text = " ".join(["one two three four five six eight nine ten"] * 12)
    at = run(model="random", text=text, against=against, step="90", other=text + " one")
    assert "rows " in words(at)
    assert sum(len(json.dumps(spec)) for spec in charts(at)) < 600_000


CHANGED = do.write_text([do.scale("encoder", 0, 0, 0.0), do.hide(1)])


def test_a_changed_run_stands_against_the_run_without_changes():
    at = run(model="random", text="one two three four", changes=CHANGED, kind="cross", against="unchanged")
    translator = models.find("random").translator()
    base = translator.translate("one two three four")
    first, second, _ = charts(at)
    head = tuple(int(part) - 1 for part in at.query_params.get("cross", "3.3").split("."))
    shown = array(second["data"][0]["customdata"])[..., 0]
    assert shown == pytest.approx(base.weights("cross", *head), abs=1e-3)
    assert array(first["data"][0]["customdata"])[:, 1, 0] == pytest.approx(0), "the hidden word"
    assert "A (changed) against B (as it is)" in words(at).replace("**", "")
    assert "verified, with 2 changes" in words(at)


def test_the_run_without_changes_is_offered_only_if_something_is_changed():
    def offered(**params: str) -> list[str]:
        return next(box.options for box in run(**params).selectbox if box.label == "Compare with")

    named = "against the run without changes"
    assert named not in offered()
    assert named in offered(changes=do.write_text([do.hide(1)]))


def test_a_link_to_the_run_without_changes_says_if_nothing_is_changed():
    at = run(against="unchanged")
    assert "Nothing is changed, so A and B are the same run." in words(at)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_what_keys_carried_is_compared_like_weights(kind: str):
    at = run(
        model="random",
        text="one two",
        kind=kind,
        against="head-1.2",
        measure="carried",
        **{kind: "1.1"},
    )
    translator = load_translator(catalogue.directory("random"))
    translation = translator.translate("one two", capture=Capture(residual=True))
    first, second = (shares(carried(translator.model, translation, kind, 0, head).norms) for head in (0, 1))
    mean = np.abs(first - second)[translation.mask(kind, 0, 0)].mean()
    assert f"mean |difference| **{mean:.2f}**" in words(at)
    assert "shares of what keys carried" in words(at)
    assert "carries most from" in words(at)
    assert words(at).count("✓ from a verified trace") == 2


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"against": "uniform", "measure": "carried"}, "Uniform attention is a formula that carries nothing"),
        ({"against": "untrained-1", "measure": "carried"}, "is not measured in an untrained twin"),
        ({"against": "head-1.2", "measure": "effect"}, "Effects are nats and no shares of a row"),
    ],
)
def test_what_has_no_such_measure_shows_weights_and_says_so(params: dict[str, str], told: str):
    at = run(model="random", text="one two", cross="1.1", **params)
    assert not at.exception
    assert told in words(at)
    assert "weights, colour from 0 to 1" in words(at)


def test_two_bundled_models_with_other_pieces_are_compared_by_words():
    text = "The embroidered tablecloth shimmered."
    at = run(model="en-de", text=text, kind="encoder", against="model-en-pt", encoder="1.1")
    first, second = (
        load_translator(catalogue.directory(name)).translate(text) for name in ("en-de", "en-pt")
    )
    assert first.source_tokens != second.source_tokens
    told = words(at)
    assert "different pieces, so both maps are read by words" in told
    maps = []
    for run_ in (first, second):
        groups = reading_groups(run_.source_tokens)
        assert [group.text for group in groups] == [
            "The",
            "embroidered",
            "tablecloth",
            "shimmered",
            ".",
            "</s>",
        ]
        weights = run_.weights("encoder", 0, 0)
        maps.append(
            [
                [weights[row.start : row.stop, key.start : key.stop].sum(1).mean() for key in groups]
                for row in groups
            ]
        )
    mean = np.abs(np.subtract(*maps)).mean()
    assert f"mean |difference| **{mean:.2f}** over 36 cells" in told
    assert "left out" not in told
