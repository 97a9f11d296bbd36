"""Refusals: a value that means nothing, a place that is not there, and changes that contradict each other."""

from __future__ import annotations

import pytest
from changes import OTHER, TEXT, changeable

from transformer import interventions as do

LENGTH = 7
STREAM = do.stream("decoder", 0, "feed_forward")
REFUSED = [
    (do.ablate("cross", 3, 0), "no layer 4 in cross-attention: there are 3"),
    (do.scale("encoder", 0, [1, 4], 2.0), "no head 5 in encoder self-attention: there are 4"),
    (do.set_row("cross", 0, 0, 7, {0: 1.0}), "no query 8 in cross-attention: there are at most 7"),
    (do.set_row("cross", 0, 0, 0, {5: 1.0}), "no key 6"),
    (do.set_row("decoder", 0, 0, 1, {2: 1.0}), "comes after it"),
    (do.set_row("cross", 0, 0, 0, [0.7, 0.7]), "more than 1"),
    (do.ablate("decoder", 0, 0, rows=[99]), "no query 100"),
    (do.ablate("cross", 0, 0, by="previous"), "no previous key"),
    (do.ablate("encoder", 0, 0, by="previous", rows=[0, 1]), "Query 1 has no previous key"),
    (do.hide(5), "no source token 6"),
    (do.mask("encoder", forbid=[(0, 5)]), "no key 6"),
    (do.mask("decoder", forbid=[(7, 0)]), "no query 8"),
    (do.mask("encoder", layer=3, forbid="past"), "no layer 4"),
    (do.mask("decoder"), "name some"),
    (do.mask("cross", forbid="past"), "two sentences"),
    (do.mask("decoder", allow="future"), "While decoding"),
    (do.mask("decoder", allow=[(1, 2)]), "While decoding"),
    (do.mask("decoder", allow=[(1, None)]), "While decoding"),
    (do.choose(7, 50), "no step 8 in this run: there are at most 7"),
    (do.prefix([50] * 8), "no step 8"),
    (do.choose(0, "nowhere"), "no token 'nowhere'"),
    (do.forbid(10_000), "no id 10000"),
    (do.forbid(7, 7), "no step 8"),
    (do.edit_source(5, 50), "no source token 6 in this run: there are 5"),
    (do.edit_source(0, "nowhere"), "no token 'nowhere'"),
    (do.drop_sublayer("encoder", 0, "cross_attention"), "has no cross-attention"),
    (do.drop_norm("encoder", 5, "feed_forward"), "no layer 6 in the encoder"),
    (do.drop_norm("encoder", 1), "name both, or none"),
    (
        do.patch(do.stream("encoder", 4, "feed_forward"), OTHER, [0]),
        "no encoder layer 5 feed-forward network",
    ),
    (do.patch(do.stream("encoder", 0, "cross_attention"), OTHER, [0]), "no encoder layer 1 cross-attention"),
    (do.patch(do.head_output("cross", 0, 4), OTHER, [0]), "no decoder layer 1 cross-attention head 5"),
    (do.patch(do.encoder_output(), OTHER, [5]), "no position 6 in the encoder: there are at most 5"),
    (do.patch(do.encoder_output(), OTHER, {0: 9}), "no position 10"),
    (do.patch(STREAM, OTHER), "While decoding"),
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


@pytest.mark.parametrize(("changes", "words"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_does_not_fit_is_refused_in_one_sentence(translator, changes, words):
    with pytest.raises(do.InterventionError, match=words) as caught:
        translator.translate(TEXT, max_length=LENGTH, interventions=changes)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: do.ablate("cross", 0, 0, by="noise"), "The by is 'noise'; it must be zero, mean"),
        (lambda: do.ablate("sideways", 0, 0), "must be encoder, decoder or cross"),
        (lambda: do.ablate("cross", -1, 0), "The layer is -1; it must be a whole number from 0"),
        (lambda: do.ablate("cross", 0, []), "from 1 to 4,096 values"),
        (lambda: do.ablate("cross", True, 0), "whole number"),
        (lambda: do.scale("cross", 0, 0, float("nan")), "must be a number"),
        (lambda: do.temperature("cross", 0, 0, 0.0), "must be a number from 0.001"),
        (lambda: do.set_row("cross", 0, 0, 0, {}), "from 1 to 4,096"),
        (lambda: do.set_row("cross", 0, 0, 0, [(0, 0.5), (0, 0.25)]), "given is"),
        (lambda: do.mask("decoder", allow="present"), "all, future, next, self, past or a pair"),
        (lambda: do.no_positions("left"), "encoder or decoder"),
        (lambda: do.drop_sublayer("encoder", 0, "norm"), "must be self_attention, cross_attention"),
        (lambda: do.choose(0, ""), "piece such as"),
        (lambda: do.prefix([]), "from 1 to"),
        (lambda: do.patch("roof", do.run("a")), "must be one of embeddings"),
        (lambda: do.patch(do.encoder_output(), 7), "must be a translation"),
        (lambda: do.patch(do.encoder_output(), do.run("a"), {0: 1, 2: "x"}), "positions"),
        (lambda: do.patch(do.encoder_output(), do.run("")), "must be a text"),
    ],
)
def test_a_value_that_means_nothing_is_refused_when_it_is_made(make, words):
    with pytest.raises(do.InterventionError, match=words) as caught:
        make()
    assert str(caught.value).endswith(".")


def test_a_run_takes_as_many_changes_as_it_says(translator):
    assert translator.translate(TEXT, interventions=[do.hide(0)] * 64).text


def test_a_stack_ends_with_a_layernorm_only_in_a_pre_norm_model(tokenizer):
    assert changeable(tokenizer, norm="pre").translate(TEXT, interventions=[do.drop_norm("decoder")]).text
    with pytest.raises(do.InterventionError, match="post-norm"):
        changeable(tokenizer, norm="post").translate(TEXT, interventions=[do.drop_norm("decoder")])
