"""Trees of real searches: their numbers against forced passes, and the run of every node."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from closed_form import CASES

from transformer import AttentionKind, Sampling, load_translator
from transformer import interventions as do
from transformer.decoding import NodeState
from transformer.translator import reached, retrace

TEXT = "one two three"
BEAM = 3


@pytest.fixture(scope="module")
def searched(translator):
    return translator.translate(TEXT, beam_size=BEAM, max_length=6, tree=True)


CHANGES = {
    "none": (),
    "head": (do.ablate("cross", 1, 2),),
    "choice": (do.choose(1, "▁drei"),),
    "prefix": (do.prefix(["▁vier", "▁one"]),),
    "forbidden": (do.forbid("▁eins"), do.hide(1)),
}


def test_a_search_without_the_question_keeps_no_tree(translator):
    assert translator.translate(TEXT, beam_size=BEAM).tree is None


def test_asking_for_the_tree_changes_nothing_else(translator, searched):
    plain = translator.translate(TEXT, beam_size=BEAM, max_length=6)
    assert plain.target_ids == searched.target_ids
    assert plain.log_probs == searched.log_probs
    assert searched.tree.token_ids(searched.tree.winner) == searched.target_ids


@pytest.mark.parametrize("name", CHANGES)
def test_every_node_is_one_of_the_best_continuations_of_what_was_kept(translator, name):
    """The search done again by forced passes: at each step, the 2 × beam best of all continuations."""
    changes = CHANGES[name]
    tree = translator.translate(TEXT, beam_size=BEAM, max_length=6, interventions=changes, tree=True).tree
    kept = [None]
    for step in range(tree.steps):
        here = [i for i, node in enumerate(tree.nodes) if node.step == step]
        assert {tree.nodes[i].parent for i in here} <= set(kept)
        if name in ("none", "head"):
            totals = torch.cat([_continuations(translator, tree, parent, changes) for parent in kept])
            best = totals.sort(descending=True).values[: 2 * BEAM].tolist()
            assert [tree.nodes[i].total for i in here] == pytest.approx(best, abs=1e-4)
        kept = [i for i in here if tree.nodes[i].state == NodeState.KEPT]
        assert len(kept) <= BEAM


def _continuations(translator, tree, parent, changes):
    """(pieces,) totals of everything that could follow a node."""
    ids = () if parent is None else tree.token_ids(parent)
    total = 0.0 if parent is None else tree.nodes[parent].total
    run = translator.force(TEXT, [*ids, 5], interventions=changes)
    return total + run.distributions()[-1]


@pytest.mark.parametrize("name", CHANGES)
def test_every_node_s_run_is_a_forced_run_of_its_prefix(translator, name):
    changes = CHANGES[name]
    base = translator.translate(TEXT, beam_size=BEAM, max_length=6, interventions=changes, tree=True)
    for i, node in enumerate(base.tree.nodes):
        ids = base.tree.token_ids(i)
        found = retrace(translator, base, node=i)
        own = translator.force(TEXT, ids, interventions=tuple(reached(changes, len(ids))))
        assert found.target_ids == own.target_ids == ids
        assert found.log_probs == pytest.approx(own.log_probs, abs=1e-5)
        assert sum(found.log_probs) == pytest.approx(node.total, abs=1e-5)
        assert found.attention.audit().passed
        for kind in AttentionKind:
            a, b = found.attention.weights(kind, 1), own.attention.weights(kind, 1)
            np.testing.assert_allclose(a, b, atol=1e-5)
        for mine, forced in zip(found.steps, own.steps, strict=True):
            assert [x.token_id for x in mine.alternatives] == [x.token_id for x in forced.alternatives]


def test_the_node_of_the_winner_shows_the_attention_of_the_translation(translator, searched):
    found = retrace(translator, searched, node=searched.tree.winner)
    for kind in AttentionKind:
        a, b = found.attention.weights(kind, 0), searched.attention.weights(kind, 0)
        np.testing.assert_allclose(a, b, atol=1e-6)
    assert found.method == searched.method


def test_a_node_that_does_not_exist_is_refused(translator, searched):
    with pytest.raises(IndexError, match="no node 1000"):
        retrace(translator, searched, node=1000)
    with pytest.raises(ValueError, match="tree=True"):
        retrace(translator, translator.translate(TEXT), node=0)


def test_greedy_search_runs_beside_the_tree(translator, searched):
    greedy = translator.translate(TEXT, max_length=6)
    assert tuple(searched.tree.stream_greedy()) == greedy.target_tokens
    assert not list(searched.tree.stream_greedy()), "it is kept"
    assert searched.tree.greedy.token_ids == greedy.target_ids
    assert searched.tree.greedy.log_probs == pytest.approx(greedy.log_probs, abs=1e-6)
    assert searched.tree.greedy.tokens == greedy.target_tokens
    assert searched.tree.greedy.total == pytest.approx(sum(greedy.log_probs))


def test_greedy_search_runs_with_the_same_changes(translator):
    changes = (do.ablate("cross", 1, 2), do.choose(1, "▁drei"))
    tree = translator.translate(TEXT, beam_size=BEAM, max_length=6, interventions=changes, tree=True).tree
    alone = translator.translate(TEXT, max_length=6, interventions=changes)
    assert tree.greedy.token_ids == alone.target_ids


def test_the_length_penalty_of_a_call_is_that_of_the_score(translator):
    for penalty in (0.0, 0.6, 2.0):
        done = translator.translate(TEXT, beam_size=BEAM, max_length=6, length_penalty=penalty, tree=True)
        node = done.tree.nodes[done.tree.winner]
        assert done.tree.rules.length_penalty == penalty
        assert node.score == pytest.approx(node.total / (node.step + 1) ** penalty)
        best = max(done.tree.nodes[i].score for i in done.tree.hypotheses)
        assert node.score == best


def test_a_call_may_score_by_the_formula_of_wu_and_its_greedy_output_is_scored_the_same(translator):
    tree = translator.translate(
        TEXT, beam_size=BEAM, max_length=6, length_penalty=0.6, length_offset=5, tree=True
    ).tree
    for each in tree.nodes:
        assert each.score == pytest.approx(each.total / ((5 + each.step + 1) / 6) ** 0.6)
    greedy = tree.greedy
    assert greedy.score == pytest.approx(greedy.total / ((5 + len(greedy.tokens)) / 6) ** 0.6)


@pytest.mark.parametrize(
    "wrong",
    [*({"length_penalty": each} for each in (math.nan, math.inf, -101.0)), {"length_offset": -1}],
)
def test_an_impossible_score_is_refused(translator, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        translator.translate(TEXT, beam_size=BEAM, **wrong)


def test_a_sample_has_no_tree(translator):
    with pytest.raises(ValueError, match="no tree"):
        translator.translate(TEXT, beam_size=1, sample=Sampling(), tree=True)


def test_a_beam_of_one_is_greedy_search_with_a_tree(translator):
    done, greedy = (
        translator.translate(TEXT, beam_size=1, max_length=6, tree=True),
        translator.translate(TEXT, beam_size=1, max_length=6),
    )
    assert done.target_ids == greedy.target_ids
    assert done.method == greedy.method
    assert done.attention.audit().passed
    assert [done.tree.nodes[i].token_id for i in done.tree.path(done.tree.winner)] == list(greedy.target_ids)


def test_a_closed_form_model_s_tree_holds_its_translation(solved):
    case = CASES[solved.name]
    tree = solved.translate(case.sentence, beam_size=4, tree=True).tree
    assert tuple(tree.nodes[i].token for i in tree.path(tree.winner)) == case.target_tokens
    assert tree.greedy.tokens == case.target_tokens
    assert tree.along(tree.greedy.token_ids) == tree.path(tree.winner)


def test_a_model_of_another_family_keeps_its_own_rules(original):
    translator = load_translator(original)
    done = translator.translate("one two three", beam_size=3, tree=True)
    assert done.tree.rules.length_penalty == translator.rules.length_penalty
    assert done.tree.token_ids(done.tree.winner) == done.target_ids
    barred = {ids[0] for ids in translator.rules.forbidden if len(ids) == 1}
    assert not barred & {node.token_id for node in done.tree.nodes}
    for i in range(len(done.tree.nodes)):
        assert retrace(translator, done, node=i).attention.audit().passed


@pytest.mark.parametrize("capture", [True, False])
def test_a_run_that_functions_changed_is_not_traced_again(translator, capture):
    hooks = {"decoder.1.cross_attention.weights": lambda weights, _: weights}
    run = translator.translate(TEXT, max_length=3, hooks=hooks, capture=capture)
    with pytest.raises(
        ValueError, match=r"Functions changed this run \(decoder\.1\.cross_attention\.weights\)"
    ):
        retrace(translator, run)
