"""Changes as text, sentence and JSON, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

import numpy as np
import pytest
from changes import EVERY
from hypothesis import given
from hypothesis import strategies as st
from properties import PROPERTY, as_file, damaged, garbled, or_refused

from transformer import interventions as do
from transformer.interventions.codec import LONGEST, MOST_CHANGES, join

OTHER = do.run("one two_~%", [5, 6, 2], [do.hide(0), do.choose(1, "▁a_b~%")])
WRITTEN = [
    json.loads(line) for line in (Path(__file__).parent / "written.jsonl").read_text("utf-8").splitlines()
]
"""(compact text, sentence, JSON) of changes of every sort."""
CHANGES = list(dict.fromkeys([*do.from_json([row[2] for row in WRITTEN]), *EVERY.values()]))
SIGNS = st.text("_~%.-x5F1▁é", min_size=1, max_size=6)


def survive(changes: tuple[do.Intervention, ...]) -> bool:
    """Whether changes are the same after text, in an address, and after JSON."""
    text = do.write_text(changes)
    assert parse_qs(urlencode({"do": text}), keep_blank_values=True)["do"] == [text]
    return changes == do.read_text(text) == do.from_json(as_file(do.to_json(changes)))


@pytest.mark.parametrize(("text", "sentence", "values"), WRITTEN, ids=[row[0][:40] for row in WRITTEN])
def test_a_change_is_written_as_ever(text, sentence, values):
    (change,) = do.read_text(text)
    assert (do.write_text([change]), str(change), do.to_json([change])) == (text, sentence, [values])
    assert do.from_json([values]) == (change,)


def test_a_list_keeps_its_order_and_its_changes_are_keys():
    assert survive(tuple(CHANGES))
    assert survive(())
    assert {type(change) for change in CHANGES} == set(do.Intervention.known.values())
    assert len({change: str(change) for change in CHANGES}) == len({*map(str, CHANGES)}) == len(CHANGES)
    assert all(line.isprintable() and len(line) < 200 for line in map(str, CHANGES))


def test_a_usual_change_is_a_plain_part_of_an_address():
    plain = do.write_text([do.ablate("cross", 1, 5, by="mean"), do.choose(3, "ist")])
    assert quote(plain) == plain == "ablate_cross_2_6_mean~choose_4_ist"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (do.ablate("encoder", 0, [3, 1, 1]), do.ablate("encoder", layer=0, head=(1, 3), by="zero")),
        (do.ablate("cross", 1, 5), do.ablate("cross", 1, [5])),
        (do.scale("cross", np.int64(1), np.arange(2), 1), do.scale("cross", 1, [0, 1], np.float32(1))),
        (do.set_row("cross", 0, 0, 1, [0.1, 0.7]), do.set_row("cross", 0, 0, 1, {1: 0.7, 0: 0.1})),
        (
            do.patch(do.encoder_output(), do.run("a"), [2, 0]),
            do.patch("encoder.output", do.run("a"), {0: 0, 2: 2}),
        ),
        (do.patch(do.encoder_output(), do.run("a", [5])), do.patch(do.encoder_output(), do.run("a"))),
    ],
)
def test_what_people_type_is_one_value(one, other):
    assert one == other
    assert survive((one,))


def test_a_place_of_the_decoder_or_a_changed_run_needs_the_other_run_s_output():
    assert do.patch(do.encoder_output(), OTHER).interventions == tuple(OTHER.interventions)
    assert do.patch(do.head_output("decoder", 0, 0), do.run("one", [5, 2])).target == (5, 2)


def test_a_patch_comes_from_a_translation_as_well(translator):
    done = translator.translate("one two", max_length=4, interventions=[do.hide(0)])
    change = do.patch(do.stream("decoder", 0, "feed_forward"), done, [1])
    assert change == do.patch(change.place, do.run("one two", done.target_ids, [do.hide(0)]), [1])


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


@PROPERTY
@given(st.lists(SIGNS, min_size=1, max_size=3))
def test_any_tokens_survive_however_deep_they_stand(tokens: list[str]):
    inner = do.run(tokens[0], None, [do.prefix(tokens), do.patch(do.encoder_output(), do.run(tokens[-1]))])
    assert survive((do.choose(0, tokens[0]), do.prefix(tokens), do.patch(do.encoder_output(), inner)))


def nested(depth: int) -> str:
    text = "hide_1"
    for _ in range(depth):
        text = join("_", ["patch", "encoder.output", "a", "x", "x", join("-", [text])])
    return text


def deep(depth: int) -> list[Any]:
    return [deep(depth - 1)] if depth else []


REFUSED = [
    *("nonsense", "~", "hide_0", "hide_one", "choose_1", "choose_-1_a", "choose_1_"),
    *("prefix", "ablate_cross_0_1", "ablate_cross_2_6_zero_1_2", "scale_cross_2_6_nan"),
    *("scale_cross_2_6_1e99", "row_cross_1_1_1_1.0.7-1.0.2", "dropsublayer_1", "patch_encoder.output_"),
    *("patch_encoder.0.attention_a", "hide_%FF", "hide_" + "9" * 5000, "x" * (LONGEST + 1)),
    *("~".join(["hide_1"] * (MOST_CHANGES + 1)), nested(3), nested(60)),
    *(None, 7, [1], [{}], [None], [{"do": "hide"}], [{"do": ["hide"]}]),
    [{"do": "hide", "source_token": True}],
    [{"do": "hide", "source_token": 1, "more": 2}],
    [{"do": "hide", "source_token": 1}] * (MOST_CHANGES + 1),
    [{"do": "prefix", "token_ids": [1] * 5000}],
    [{"do": "prefix", "token_ids": deep(900)}],
]


@pytest.mark.parametrize("values", REFUSED, ids=lambda values: str(values)[:40])
def test_what_means_nothing_is_refused_in_one_sentence(values):
    with pytest.raises(do.InterventionError, match=r"^[^\n]{1,300}\.$"):
        do.read_text(values) if isinstance(values, str) else do.from_json(values)
