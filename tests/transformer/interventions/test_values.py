"""Interventions as values: text, sentence, JSON, and back; what means nothing or does not fit is
refused."""

import json
from dataclasses import MISSING, fields
from inspect import Parameter, isfunction, signature
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import numpy as np
import pytest
from changes import EVERY, TEXT, changeable
from changes import OTHER as RUN
from hypothesis import given
from hypothesis import strategies as st
from properties import PROPERTY, as_file, damaged, garbled, or_refused

from transformer import interventions as do
from transformer.interventions.codec import LONGEST, MOST_CHANGES, join
from transformer.interventions.request import carries_over
from transformer.storage.description import read_config

OTHER = do.run("one two_~%", [5, 6, 2], [do.hide(0), do.choose(1, "▁a_b~%")])
WRITTEN = [
    json.loads(line)
    for line in (Path(__file__).parent / "written.jsonl").read_text("utf-8").splitlines()
]
"""(compact text, sentence, JSON) of changes of every sort."""
CHANGES = list(dict.fromkeys([*do.from_json([row[2] for row in WRITTEN]), *EVERY.values()]))
SIGNS = st.text("_~%.-x5F1▁é", min_size=1, max_size=6)


def survive(changes: tuple[do.Intervention, ...]) -> bool:
    """Whether changes are the same after text, in an address, and after JSON."""
    text = do.write_text(changes)
    assert parse_qs(urlencode({"do": text}), keep_blank_values=True)["do"] == [text]
    return changes == do.read_text(text) == do.from_json(as_file(do.to_json(changes)))


@pytest.mark.parametrize(
    ("text", "sentence", "values"), WRITTEN, ids=[row[0][:40] for row in WRITTEN]
)
def test_a_change_is_written_as_ever(text, sentence, values):
    (change,) = do.read_text(text)
    assert (do.write_text([change]), str(change), do.to_json([change])) == (
        text,
        sentence,
        [values],
    )
    assert do.from_json([values]) == (change,)


FUNCTIONS = {
    value.__annotations__["return"]: value
    for value in vars(do).values()
    if isfunction(value) and value.__module__.startswith("transformer.interventions.")
}


@pytest.mark.parametrize("kind", do.Intervention.known.values(), ids=do.Intervention.known)
def test_a_function_takes_what_its_class_holds(kind):
    if kind is do.Patch:
        pytest.skip(
            "its function takes a run, which the class holds as a text, an output and changes"
        )
    held = [(field.name, field.default) for field in fields(kind)]
    parameters = signature(FUNCTIONS[kind]).parameters.values()
    assert [(parameter.name, parameter.default) for parameter in parameters] == [
        (name, Parameter.empty if default is MISSING else default) for name, default in held
    ]


def test_a_list_keeps_its_order_and_its_changes_are_keys():
    assert survive(tuple(CHANGES))
    assert survive(())
    assert {type(change) for change in CHANGES} == set(do.Intervention.known.values())
    assert (
        len({change: str(change) for change in CHANGES})
        == len({*map(str, CHANGES)})
        == len(CHANGES)
    )
    assert all(line.isprintable() and len(line) < 200 for line in map(str, CHANGES))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (do.ablate("encoder", 0, [3, 1, 1]), do.ablate("encoder", layer=0, head=(1, 3), by="zero")),
        (do.ablate("cross", 1, 5), do.ablate("cross", 1, [5])),
        (
            do.scale("cross", np.int64(1), np.arange(2), 1),
            do.scale("cross", 1, [0, 1], np.float32(1)),
        ),
        (do.set_row("cross", 0, 0, 1, [0.1, 0.7]), do.set_row("cross", 0, 0, 1, {1: 0.7, 0: 0.1})),
        (
            do.patch(do.encoder_output(), do.run("a"), [2, 0]),
            do.patch("encoder.output", do.run("a"), {0: 0, 2: 2}),
        ),
        (
            do.patch(do.encoder_output(), do.run("a", [5])),
            do.patch(do.encoder_output(), do.run("a")),
        ),
    ],
)
def test_what_people_type_is_one_value(one, other):
    assert one == other
    assert survive((one,))


def test_a_patch_takes_what_the_other_run_was(translator):
    assert do.patch(do.encoder_output(), OTHER).interventions == tuple(OTHER.interventions)
    assert do.patch(do.head_output("decoder", 0, 0), do.run("one", [5, 2])).target == (5, 2)
    run = translator.translate("one two", max_length=4, interventions=[do.hide(0)])
    change = do.patch(do.stream("decoder", 0, "feed_forward"), run, [1])
    assert change == do.patch(change.place, do.run("one two", run.target_ids, [do.hide(0)]), [1])


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
    inner = do.run(
        tokens[0], None, [do.prefix(tokens), do.patch(do.encoder_output(), do.run(tokens[-1]))]
    )
    assert survive(
        (do.choose(0, tokens[0]), do.prefix(tokens), do.patch(do.encoder_output(), inner))
    )


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
    *(
        "scale_cross_2_6_1e99",
        "row_cross_1_1_1_1.0.7-1.0.2",
        "dropsublayer_1",
        "patch_encoder.output_",
    ),
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


STREAM = do.stream("decoder", 0, "feed_forward")
UNFIT = [
    (do.ablate("cross", 3, 0), "no layer 4 in cross-attention: there are 3"),
    (do.scale("encoder", 0, [1, 4], 2.0), "no head 5 in encoder self-attention: there are 4"),
    (do.set_row("cross", 0, 0, 7, {0: 1.0}), "no query 8 in cross-attention: there are at most 7"),
    (do.set_row("cross", 0, 0, 0, {5: 1.0}), "no key 6"),
    (do.set_row("decoder", 0, 0, 1, {2: 1.0}), "comes after it"),
    (do.set_row("cross", 0, 0, 0, [0.7, 0.7]), "more than 1"),
    (do.ablate("cross", 0, 0, by="previous"), "no previous key"),
    (do.ablate("encoder", 0, 0, by="previous", rows=[0, 1]), "Query 1 has no previous key"),
    (do.hide(5), "no source token 6"),
    (do.mask("decoder", forbid=[(7, 0)]), "no query 8"),
    (do.mask("decoder"), "name some"),
    (do.mask("cross", forbid="past"), "two sentences"),
    (do.mask("cross", forbid=[("later", 0)]), "two sentences"),
    (do.mask("decoder", forbid=[("later", 99)]), "no key 100"),
    (do.mask("decoder", allow="future"), "While decoding"),
    (do.mask("decoder", allow=[(1, None)]), "While decoding"),
    (do.choose(7, 50), "no step 8 in this run: there are at most 7"),
    (do.prefix([50] * 8), "no step 8"),
    (do.choose(0, "nowhere"), "no token 'nowhere'"),
    (do.forbid(10_000), "no id 10000"),
    (do.edit_source(5, 50), "no source token 6 in this run: there are 5"),
    (do.drop_sublayer("encoder", 0, "cross_attention"), "has no cross-attention"),
    (do.drop_norm("encoder", 5, "feed_forward"), "no layer 6 in the encoder"),
    (do.drop_norm("encoder", 1), "name both, or none"),
    (
        do.patch(do.stream("encoder", 0, "cross_attention"), RUN, [0]),
        "no encoder layer 1 cross-attention",
    ),
    (
        do.patch(do.head_output("cross", 0, 4), RUN, [0]),
        "no decoder layer 1 cross-attention head 5",
    ),
    (do.patch(do.encoder_output(), RUN, {0: 9}), "no position 10"),
    (do.patch(STREAM, RUN), "While decoding"),
    (do.patch(STREAM, do.run("one"), [0]), "needs the output"),
    ([do.choose(1, 50), do.choose(1, 51)], "decide step 2"),
    ([do.prefix([50, 51]), do.choose(0, 50)], "decide step 1"),
    ([do.choose(1, 50), do.forbid(50)], "also forbidden"),
    ([do.choose(1, 2), do.choose(3, 50)], "ends the output"),
    ([do.drop_source(0), do.edit_source(0, 50)], "decide source token 1"),
    ([do.hide(0), do.set_row("cross", 0, 0, 0, {0: 1.0})], "hidden"),
    ([do.set_row("cross", 0, 0, 0, dict.fromkeys(range(5), 0.1))], "no other key"),
    ([do.hide(0)] * 65, "at most 64"),
    (["ablate"], "cannot be read"),
]


@pytest.mark.parametrize(("changes", "words"), UNFIT, ids=lambda value: str(value)[:40])
def test_what_does_not_fit_a_run_is_refused_in_one_sentence(ready, changes, words):
    with pytest.raises(do.InterventionError, match=words) as caught:
        ready.translate(TEXT, max_length=7, interventions=changes)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def ready(tokenizer):
    return changeable(tokenizer, norm="post")


MEANINGLESS = [
    (lambda: do.ablate("cross", 0, 0, by="noise"), "The by is 'noise'; it must be zero, mean"),
    (lambda: do.ablate("sideways", 0, 0), "must be encoder, decoder or cross"),
    (lambda: do.ablate("cross", -1, 0), "The layer is -1; it must be a whole number from 0"),
    (lambda: do.ablate("cross", 0, []), "from 1 to 4,096 values"),
    (lambda: do.scale("cross", 0, 0, float("nan")), "must be a number"),
    (lambda: do.temperature("cross", 0, 0, 0.0), "must be a number from 0.001"),
    (lambda: do.set_row("cross", 0, 0, 0, {}), "from 1 to 4,096"),
    (lambda: do.set_row("cross", 0, 0, 0, [(0, 0.5), (0, 0.25)]), "given is"),
    (lambda: do.mask("decoder", allow="present"), "all, future, next, self, past or a pair"),
    (lambda: do.no_positions("left"), "encoder or decoder"),
    (lambda: do.drop_sublayer("encoder", 0, "norm"), "must be self_attention, cross_attention"),
    (lambda: do.choose(0, ""), "piece such as"),
    (lambda: do.patch("roof", do.run("a")), "must be one of embeddings"),
    (lambda: do.patch(do.encoder_output(), 7), "must be a translation"),
    (lambda: do.patch(do.encoder_output(), do.run("a"), {0: 1, 2: "x"}), "positions"),
    (lambda: do.patch(do.encoder_output(), do.run("")), "must be a text"),
]


@pytest.mark.parametrize(("make", "words"), MEANINGLESS, ids=range(len(MEANINGLESS)))
def test_a_value_that_means_nothing_is_refused_when_it_is_made(make, words):
    with pytest.raises(do.InterventionError, match=words) as caught:
        make()
    assert str(caught.value).endswith(".")


def test_a_row_may_look_ahead_where_a_mask_of_its_own_kind_lets_it(ready):
    ids = (40, 41, 42, 43)
    row = do.set_row("decoder", 0, 1, 1, {2: 1.0})
    run = ready.force(TEXT, ids, interventions=[do.mask("decoder", allow=[(1, 2)]), row])
    assert run.attention.weights("decoder", 0, 1)[1].tolist() == [0, 0, 1, 0]
    with pytest.raises(
        do.InterventionError, match="Query 2 cannot attend to key 3, which comes after it"
    ):
        ready.force(TEXT, ids, interventions=[do.mask("encoder", allow=[(1, 2)]), row])


MODELS = Path(__file__).parents[3] / "assets" / "models"
EVERY = {"en-pt", "en-de", "language/lm-en", "encoder/masked-en"}
OTHER = do.run("He is old.", (7, 8))
BY_ID = (
    do.choose(0, 7),
    do.forbid(7),
    do.prefix(("x", 7)),
    do.edit_source(0, 7),
    do.patch(do.embeddings("decoder"), OTHER, [(0, 0)]),
    do.patch(do.embeddings("encoder"), do.run("He", (), [do.edit_source(0, 7)]), [(0, 0)]),
)
"""Changes that name a token by its id, which is another one in another vocabulary."""


@pytest.mark.parametrize(
    ("change", "unfit"),
    [
        (do.ablate("cross", 5, 2), {"en-de", "language/lm-en", "encoder/masked-en"}),
        (do.ablate("decoder", 1, 0), {"encoder/masked-en"}),
        (do.ablate("encoder", 1, 7), {"language/lm-en"}),
        (do.choose(400, "x"), {"encoder/masked-en"}),
        (do.forbid("x"), {"encoder/masked-en"}),
        (do.prefix(("x", "y")), {"encoder/masked-en"}),
        *((change, EVERY) for change in BY_ID),
        (do.hide(300), {"language/lm-en", "encoder/masked-en"}),
    ],
)
def test_a_change_carries_over_to_a_model_that_has_what_it_is_about(
    change: do.Intervention, unfit: set[str]
) -> None:
    assert unfit == {name for name in EVERY if not carries_over(change, read_config(MODELS / name))}


@pytest.mark.parametrize("change", BY_ID, ids=str)
def test_an_id_means_the_same_in_a_model_with_the_same_vocabulary(change: do.Intervention) -> None:
    assert change.named_ids
    config = read_config(MODELS / "en-pt")
    assert carries_over(change, config, same_vocabulary=True)
    assert not carries_over(change, config, same_vocabulary=False)
