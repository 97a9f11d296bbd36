from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode

import pytest
from changes import EVERY
from hypothesis import given
from hypothesis import strategies as st
from properties import PROPERTY, as_file, damaged, garbled, or_refused

from transformer import interventions as do
from transformer.interventions.codec import LONGEST, MOST_CHANGES

OTHER = do.run("one two_~%", [5, 6, 2], [do.hide(0), do.choose(1, "▁a_b~%")])
CHANGES = [
    do.choose(0, 412),
    do.choose(0, "412"),
    do.choose(0, "."),
    do.choose(0, "_~%5F"),
    do.forbid(7, step=2),
    do.ablate("decoder", 2),
    do.scale("cross", 0, None, 1e-05, rows=4),
    do.set_row("encoder", 1, None, 2, [0.1, 0.2, 0.7]),
    do.mask("cross", forbid=[(None, 2), (1, 0), (3, None)], layer=2),
    do.mask("encoder", allow=[(0, 1)], forbid="past"),
    do.drop_norm("decoder"),
    do.patch(do.stream("decoder", 1, "feed_forward"), OTHER, {2: 1, 0: 0}),
    do.patch(do.encoder_output(), OTHER, 1),
]
WRITTEN = [
    json.loads(line) for line in (Path(__file__).parent / "written.jsonl").read_text("utf-8").splitlines()
]
"""(compact text, sentence, JSON) of changes of every sort."""
CHANGES = list(dict.fromkeys([*CHANGES, *EVERY.values()]))


def test_a_list_keeps_its_order_as_text_and_as_json():
    assert survive(tuple(CHANGES))
    assert do.read_text("") == do.from_json([]) == ()
    assert do.write_text([]) == ""


def test_every_sort_of_change_is_among_those_written():
    assert {type(change) for change in CHANGES} == set(do.Intervention.known.values())


@pytest.mark.parametrize(("text", "sentence", "values"), WRITTEN, ids=[row[0][:40] for row in WRITTEN])
def test_a_change_is_written_as_ever(text, sentence, values):
    (change,) = do.read_text(text)
    assert (do.write_text([change]), str(change), do.to_json([change])) == (text, sentence, [values])
    assert do.from_json([values]) == (change,)


def test_the_text_survives_an_address():
    text = do.write_text(CHANGES)
    assert parse_qs(urlencode({"do": text}))["do"] == [text]
    plain = "ablate_cross_2.6_mean~choose_4_ist"
    assert do.write_text(do.read_text(plain)) == quote(plain) == plain


def test_changes_are_keys_and_equal_by_what_they_say():
    again = do.read_text(do.write_text(CHANGES))
    assert {change: place for place, change in enumerate(CHANGES)} == dict(
        zip(again, range(99), strict=False)
    )
    assert do.ablate("cross", 1, 5) != do.ablate("cross", 1, 5, by="mean")
    assert do.ablate("cross", 1, 5) == do.ablate("cross", 1, [5])


def test_people_read_a_change_as_one_line_that_counts_from_1():
    lines = [str(change) for change in CHANGES]
    assert len(set(lines)) == len(lines)
    assert all(line and "\n" not in line and len(line) < 200 for line in lines)


def test_several_heads_are_kept_in_order_and_once():
    assert do.ablate("encoder", 0, [3, 1, 1]).head == (1, 3)
    assert do.scale("cross", 0, 2, 0.5, rows=[4, 0]).rows == (0, 4)


def test_an_encoder_s_place_needs_the_other_run_s_output_only_if_that_run_was_changed():
    assert do.patch(do.encoder_output(), do.run("one", [5, 2])).from_run.target is None
    assert do.patch(do.encoder_output(), OTHER).from_run == OTHER
    assert do.patch(do.head_output("decoder", 0, 0), do.run("one", [5, 2])).from_run.target == (5, 2)


def test_a_patch_comes_from_a_translation_as_well(translator):
    done = translator.translate("one two", max_length=4, interventions=[do.hide(0)])
    change = do.patch(do.stream("decoder", 0, "feed_forward"), done, [1])
    assert change.from_run == do.run("one two", done.target_ids, [do.hide(0)])
    plain = do.patch(do.encoder_output(), translator.translate("one two", max_length=4))
    assert plain.from_run == do.run("one two")


def survive(changes: tuple[do.Intervention, ...]) -> bool:
    """Whether changes are the same after text and after JSON."""
    return changes == do.read_text(do.write_text(changes)) == do.from_json(as_file(do.to_json(changes)))


@PROPERTY
@given(st.lists(st.sampled_from(CHANGES), max_size=3).map(do.write_text).flatmap(garbled))
def test_a_text_says_a_change_that_survives_or_is_refused_in_one_sentence(text: str):
    with or_refused(do.InterventionError):
        assert survive(do.read_text(text))


@PROPERTY
@given(st.sampled_from(CHANGES).flatmap(lambda change: damaged(do.to_json([change]))))
def test_json_says_a_change_that_survives_or_is_refused_in_one_sentence(values: object):
    with or_refused(do.InterventionError):
        assert survive(do.from_json(values))


@pytest.mark.parametrize(
    "text",
    [
        *("nonsense", "~", "hide_0", "hide_one", "choose_1", "choose_-1_a", "choose_1_", "prefix"),
        *(
            "ablate_cross_0.1_zero",
            "ablate_cross_2.6_zero_1_2",
            "scale_cross_2.6_nan",
            "scale_cross_2.6_1e99",
        ),
        *("row_cross_1.1_1_1_0.7_1_0.2", "dropsublayer_1", "patch_output_all__none_"),
        "x" * (LONGEST + 1),
        "~".join(["hide_1"] * (MOST_CHANGES + 1)),
    ],
    ids=lambda text: text[:40],
)
def test_a_text_that_means_nothing_is_refused(text: str):
    with pytest.raises(do.InterventionError):
        do.read_text(text)


@pytest.mark.parametrize(
    "values",
    [
        *(None, {}, [1], [{}], [{"do": "hide"}], [{"do": "hide", "source_token": True}]),
        [{"do": "hide", "source_token": 1, "more": 2}],
        [{"do": "hide", "source_token": 1}] * (MOST_CHANGES + 1),
    ],
    ids=lambda values: str(values)[:60],
)
def test_json_that_means_nothing_is_refused(values: object):
    with pytest.raises(do.InterventionError):
        do.from_json(values)


def test_runs_may_not_be_nested_without_end():
    nested = do.run("a")
    for _ in range(2):
        nested = do.run("a", None, [do.patch(do.encoder_output(), nested)])
    with pytest.raises(do.InterventionError, match="nested"):
        do.patch(do.encoder_output(), do.run("a", None, [do.patch(do.encoder_output(), nested)]))
