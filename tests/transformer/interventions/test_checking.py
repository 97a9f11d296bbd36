from __future__ import annotations

from dataclasses import replace

import pytest
from changes import OTHER, TEXT

from transformer import interventions as do

LENGTH = 7

REFUSED = {
    "layer": (do.ablate("cross", 3, 0), "no layer 4 of cross-attention"),
    "head": (do.scale("encoder", 0, [1, 4], 2.0), "no head 5"),
    "query": (do.set_row("cross", 0, 0, 7, {0: 1.0}), "no query 8"),
    "key": (do.set_row("cross", 0, 0, 0, {5: 1.0}), "no key 6"),
    "later key": (do.set_row("decoder", 0, 0, 1, {2: 1.0}), "comes after it"),
    "row": (do.ablate("decoder", 0, 0, rows=[99]), "no query 100"),
    "hidden": (do.hide(5), "no source token 6"),
    "cell": (do.mask("encoder", forbid=[(0, 5)]), "lies outside"),
    "region": (do.mask("cross", forbid="past"), "two sentences"),
    "lifted": (do.mask("decoder", allow="future"), "While decoding"),
    "lifted cell": (do.mask("decoder", allow=[(1, 2)]), "While decoding"),
    "step": (do.choose(7, 50), "no step 8"),
    "long prefix": (do.prefix([50] * 8), "no step 8"),
    "token": (do.choose(0, "nowhere"), "no token 'nowhere'"),
    "id": (do.forbid(10_000), "no id 10000"),
    "source token": (do.edit_source(5, 50), "no source token 6"),
    "source piece": (do.edit_source(0, "nowhere"), "no token 'nowhere'"),
    "sub-layer": (do.drop_sublayer("encoder", 0, "cross_attention"), "has no cross-attention"),
    "stack": (do.drop_norm("encoder", 5, "feed_forward"), "no layer 6"),
    "patched layer": (do.patch(do.stream("encoder", 4, "feed_forward"), OTHER, [0]), "no layer 5"),
    "patched head": (do.patch(do.head_output("cross", 0, 9), OTHER, [0]), "no head 10"),
    "patched position": (do.patch(do.encoder_output(), OTHER, [5]), "no position 6"),
    "patched from": (do.patch(do.encoder_output(), OTHER, {0: 9}), "no position 10"),
    "whole output": (do.patch(do.stream("decoder", 0, "feed_forward"), OTHER), "While decoding"),
    "no output": (do.patch(do.stream("decoder", 0, "feed_forward"), do.run("one"), [0]), "needs the output"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_place_that_is_not_there_is_refused_before_anything_runs(translator, name):
    change, words = REFUSED[name]
    with pytest.raises(do.InterventionError, match=words) as caught:
        translator.translate(TEXT, max_length=LENGTH, interventions=[change])
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([do.choose(1, 50), do.choose(1, 51)], "decide step 2"),
        ([do.prefix([50, 51]), do.choose(0, 50)], "decide step 1"),
        ([do.choose(1, 50), do.forbid(50)], "also forbidden"),
        ([do.choose(1, 2), do.choose(3, 50)], "ends the output"),
        ([do.drop_source(0), do.edit_source(0, 50)], "decide source token 1"),
        ([do.hide(0), do.set_row("cross", 0, 0, 0, {0: 1.0})], "hidden"),
        ([do.set_row("cross", 0, 0, 0, dict.fromkeys(range(5), 0.1))], "no other key"),
        ([do.hide(0)] * 65, "at most 64"),
        (["ablate"], "not an intervention"),
    ],
)
def test_changes_that_contradict_each_other_are_refused(translator, changes, words):
    with pytest.raises(do.InterventionError, match=words):
        translator.translate(TEXT, max_length=LENGTH, interventions=changes)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: do.ablate("cross", 0, 0, by="previous"), "no previous key"),
        (lambda: do.ablate("encoder", 0, 0, by="previous", rows=[0, 1]), "Query 1 has no previous key"),
        (lambda: do.ablate("cross", 0, 0, by="noise"), "not by 'noise'"),
        (lambda: do.ablate("sideways", 0, 0), "encoder, decoder or cross"),
        (lambda: do.ablate("cross", -1, 0), "whole number from 0"),
        (lambda: do.ablate("cross", 0, []), "from 1 to"),
        (lambda: do.scale("cross", 0, 0, float("nan")), "must be a number"),
        (lambda: do.temperature("cross", 0, 0, 0.0), "must be a number"),
        (lambda: do.set_row("cross", 0, 0, 0, [0.7, 0.7]), "more than 1"),
        (lambda: do.set_row("cross", 0, 0, 0, {}), "1 to 4,096"),
        (lambda: do.mask("decoder"), "name some"),
        (lambda: do.no_positions("left"), "encoder or decoder"),
        (lambda: do.drop_sublayer("encoder", 0, "norm"), "must be self_attention, cross_attention"),
        (lambda: do.choose(0, ""), "piece such as"),
        (lambda: do.prefix("abc"), "list of 1"),
        (lambda: do.patch("roof", do.run("a")), "needs a place"),
        (lambda: do.patch(do.encoder_output(), "a run"), "from a translation"),
        (lambda: do.patch(do.encoder_output(), do.run("a"), []), "1 to 4,096"),
        (lambda: do.run(""), "no text"),
    ],
)
def test_a_value_that_means_nothing_is_refused_when_it_is_made(make, words):
    with pytest.raises(do.InterventionError, match=words) as caught:
        make()
    assert str(caught.value).endswith(".")


def test_a_run_takes_as_many_changes_as_it_says(translator):
    assert translator.translate(TEXT, interventions=[do.hide(0)] * 64).text


def test_a_stack_ends_with_a_layernorm_only_in_a_pre_norm_model(translator):
    shape = do.RunShape(replace(translator.config, norm="pre"), 5, 5, LENGTH)
    do.drop_norm("decoder").check(shape)
    with pytest.raises(do.InterventionError, match="post-norm"):
        do.drop_norm("decoder").check(replace(shape, config=replace(shape.config, norm="post")))
