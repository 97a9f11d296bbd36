"""Runs with interventions, the trees of searches, and draws: against forced passes, and by hand."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from changes import EVERY, INSIDE, TEXT, TOKENS, changeable
from torch.nn import functional as F

from transformer import Sampling, Translation, Translator
from transformer import interventions as do
from transformer.decoding import NodeState
from transformer.encodings import REGISTRY
from transformer.interventions import InterventionError
from transformer.translator import reached, retrace

LENGTH = 7
IDS = tuple(range(40, 46))
OTHER = "five six eight nine"
NEAR: dict[str, Any] = {"atol": 2e-5, "rtol": 1e-7}


@pytest.fixture(scope="module", params=["pre", "post"])
def ready(request, tokenizer) -> Translator:
    return changeable(tokenizer, norm=request.param)


@pytest.fixture(scope="module")
def pre(tokenizer) -> Translator:
    return changeable(tokenizer, norm="pre")


def weights_of(run: Translation) -> list[np.ndarray]:
    return [run.attention.weights(*place) for place in run.attention.places]


def check_forced(translator: Translator, run: Translation, source: str = TEXT) -> None:
    """A run's numbers are those of a forced pass with the same changes, and both are verified."""
    forced = translator.force(source, run.target_ids, interventions=run.interventions)
    np.testing.assert_allclose(run.log_probs, forced.log_probs, **NEAR)
    for mine, other in zip(weights_of(run), weights_of(forced), strict=True):
        np.testing.assert_allclose(mine, other, **NEAR)
    assert run.attention.audit().passed, run.interventions
    assert forced.attention.audit().passed, run.interventions


@pytest.mark.parametrize("name", EVERY)
def test_every_change_acts_in_every_way_to_decode_and_is_verified(ready, name):
    change = EVERY[name]
    run = partial(ready.translate, TEXT, max_length=LENGTH)
    plain = run()
    changed = run(interventions=[change])
    assert changed.interventions == (change,)
    acted = (changed.log_probs, changed.target_tokens) != (plain.log_probs, plain.target_tokens)
    assert acted or name == "forbid"
    report = changed.attention.audit()
    assert (report.passed, report.changes) == (True, (str(change),)), report
    assert changed.head("cross", 1, 2).audit.changes == report.changes
    for more in ({}, {"beam_size": 3}, {"sample": Sampling(seed=3)}):
        check_forced(ready, run(interventions=[change], **more))
    bare = run(interventions=[change], capture=False)
    assert (bare.log_probs, bare.attention) == (changed.log_probs, None)
    again = retrace(ready, changed)
    assert again.attention.audit().passed
    assert (bool(again.attention.residuals), again.interventions) == (True, (change,))
    assert run().log_probs == plain.log_probs


@pytest.mark.parametrize("positions", sorted({*REGISTRY} - {"sinusoidal"}))
def test_every_change_is_the_same_with_and_without_a_cache_for_every_encoding(tokenizer, positions):
    translator = changeable(tokenizer, positions=positions)
    for name, change in INSIDE.items():
        if positions != "none" or not isinstance(change, do.NoPositions):
            options = {"beam_size": 3} if name in ("hide", "patch a stream") else {}
            run = translator.translate(TEXT, max_length=LENGTH, interventions=[change], **options)
            check_forced(translator, run)


def test_only_the_layers_touched_leave_the_fused_path(pre, monkeypatch):
    fused, calls = F.scaled_dot_product_attention, []

    def counted(*arguments: Any, **named: Any) -> torch.Tensor:
        calls.append(1)
        return fused(*arguments, **named)

    monkeypatch.setattr(F, "scaled_dot_product_attention", counted)

    def count(*changes: do.Intervention) -> int:
        calls.clear()
        pre.translate(TEXT, max_length=5, interventions=changes)
        return len(calls)

    plain = count()
    assert plain == 2 + 5 * 6
    assert count(do.ablate("cross", 1, 0, by="uniform")) == plain - 5
    assert count(do.set_row("encoder", 0, 1, 0, {1: 1.0})) == plain - 1
    assert count(do.hide(0)) == plain - 5 * 3
    assert count(do.scale("cross", 1, 0, 2.0), do.ablate("encoder", 0)) == plain


def test_changes_of_one_head_act_in_their_order_and_a_division_goes_once(ready):
    even = do.ablate("cross", 0, 1, by="uniform")
    row = do.set_row("cross", 0, 1, 0, {0: 1.0})
    for changes, weight in (([row, even], 0.2), ([even, row], 1.0)):
        run = ready.force(TEXT, IDS, interventions=changes)
        assert run.attention.weights("cross", 0, 1)[0, 0] == pytest.approx(weight)
    lists: list[list[do.Intervention]] = [[], [do.unscaled("cross", 1, 2)]]
    lists.append(
        [*lists[1], do.unscaled("cross", 1)]
    )  # one head by itself, and as one of its layer
    runs = [ready.translate(TEXT, max_length=LENGTH, interventions=changes) for changes in lists]
    own, once, twice = (run.attention.map("cross", 1).scores[2][0] for run in runs)
    np.testing.assert_allclose(once, own * ready.config.d_head**0.5, rtol=1e-4)
    np.testing.assert_allclose(twice, once, rtol=1e-4)
    assert runs[2].attention.audit().passed


def test_a_mask_covers_rows_columns_and_named_cells():
    """The cells of three queries and keys that a mask that forbids shows."""
    for cells, shown in (
        ([(1, None)], [[1, 1, 1], [0, 0, 0], [1, 1, 1]]),
        ([(None, 0)], [[0, 1, 1]] * 3),
        ("self", [[0, 1, 1], [1, 0, 1], [1, 1, 0]]),
        ("past", [[1, 1, 1], [0, 1, 1], [0, 0, 1]]),
        ("next", [[1, 0, 1], [1, 1, 0], [1, 1, 1]]),
    ):
        mask = do.mask("encoder", forbid=cells)
        assert [
            [int(do.allows(mask, query, key, True)) for key in range(3)] for query in range(3)
        ] == shown


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_a_cell_that_is_allowed_and_forbidden_is_hidden(ready, kind):
    both = do.mask(kind, allow=[(2, 1)], forbid=[(2, 1)])
    run = ready.force(TEXT, IDS, interventions=[both])
    assert not run.attention.map(kind, 0).mask[2, 1]
    assert not do.allows(both, 2, 1)
    assert (run.attention.weights(kind, 0)[:, 2, 1] == 0).all()
    assert run.attention.audit().passed


def test_a_source_without_any_visible_word_has_an_output_of_zeros(ready):
    nothing = ready.translate("one", max_length=2, interventions=[do.hide(0), do.hide(1)])
    assert not nothing.attention.weights("cross", 0).any()
    assert not nothing.attention.layer("cross", 0).output.any()
    assert nothing.attention.audit().passed


def test_patching_everything_gives_the_other_run_and_patching_its_own_nothing(ready):
    own = ready.force(TEXT, IDS)
    other = ready.force(OTHER, IDS)
    for place in (
        do.embeddings("encoder"),
        do.stream("encoder", 1, "feed_forward"),
        do.encoder_output(),
    ):
        for source in (other, own):
            patched = ready.force(TEXT, IDS, interventions=[do.patch(place, source)])
            assert patched.log_probs == source.log_probs
    last = do.stream("decoder", 2, "feed_forward")
    assert (
        ready.force(TEXT, IDS, interventions=[do.patch(last, other)]).log_probs == other.log_probs
    )
    decoded = ready.translate(
        TEXT, max_length=LENGTH, interventions=[do.patch(do.encoder_output(), other)]
    )
    assert decoded.text == ready.translate(OTHER, max_length=LENGTH).text
    with pytest.raises(InterventionError, match="has 3 positions in the encoder and this one 5"):
        ready.force(
            TEXT, IDS, interventions=[do.patch(do.encoder_output(), ready.force("five six", IDS))]
        )


def test_a_chosen_token_stands_beside_the_model_s_own_alternatives(ready):
    plain = ready.translate(TEXT, max_length=LENGTH)
    for size in (1, 3):
        changes = [INSIDE["ablate by zero"], INSIDE["hide"], TOKENS["choose"], TOKENS["forbid"]]
        run = ready.translate(TEXT, beam_size=size, max_length=LENGTH, interventions=changes)
        check_forced(ready, run)
        assert run.steps[2].token_id == 50
    chosen = ready.translate(TEXT, max_length=LENGTH, interventions=[do.choose(2, 50)])
    step = chosen.steps[2]
    assert (step.token_id, step.forced, step.alternatives) == (
        50,
        True,
        plain.steps[2].alternatives,
    )
    begun = ready.translate(
        TEXT, max_length=LENGTH, interventions=[do.prefix(chosen.target_ids[:3])]
    )
    assert begun.log_probs == chosen.log_probs


@pytest.mark.parametrize(
    "options", [{"beam_size": 1}, {"beam_size": 3}, {"beam_size": 2, "tree": True}]
)
def test_a_source_whose_end_became_padding_is_translated_and_verified(ready, options):
    """A beam of three rows ended in a RuntimeError: its padding had three rows, its memory one."""
    end = do.edit_source(len(ready.ids(TEXT)), "<pad>")
    run = ready.translate(TEXT, max_length=5, interventions=[end], **options)
    assert run.source_tokens[-1] == "<pad>"
    assert not run.attention.weights("cross", 0)[..., -1].any()
    check_forced(ready, run)


def test_a_change_of_a_row_that_the_output_never_reached_is_said(ready):
    for late in (do.set_row("cross", 0, 0, 2, {0: 1.0}), do.ablate("decoder", 0, 0, rows=[2, 5])):
        run = ready.translate(TEXT, interventions=[do.choose(1, 2), late], max_length=LENGTH)
        assert len(run.target_tokens) == 2
        assert f"The output ended before this change could act: {late}." in run.notes
        assert retrace(ready, run).attention.audit().passed
    acts = do.set_row("cross", 0, 0, 1, {0: 1.0})
    assert not ready.translate(TEXT, interventions=[do.choose(1, 2), acts], max_length=LENGTH).notes


LACKS: list[tuple[dict[str, str], do.Intervention, str]] = [
    ({}, do.ablate("cross", 0, 0, by="mean"), "has no mean outputs"),
    ({"positions": "none"}, do.no_positions("encoder"), "no positions"),
    ({"norm": "post"}, do.drop_norm("encoder"), "post-norm"),
]


@pytest.mark.parametrize(("config", "change", "words"), LACKS, ids=str)
def test_what_a_model_does_not_have_is_refused_with_a_sentence(
    translator, tokenizer, config, change, words
):
    model = changeable(tokenizer, **config) if config else translator
    with pytest.raises(InterventionError, match=words):
        model.translate("one", interventions=[change])


def test_tokens_that_contradict_an_output_or_leave_no_source_are_refused(ready):
    assert (
        ready.force(TEXT, IDS, interventions=[do.choose(1, 41), do.forbid(7)])
        .attention.audit()
        .passed
    )
    for change in (do.choose(1, 50), do.forbid(42), do.prefix([40, 42])):
        with pytest.raises(InterventionError, match="contradicts a change"):
            ready.force(TEXT, IDS, interventions=[change])
    with pytest.raises(InterventionError, match="No source token is left"):
        ready.translate("one", interventions=[do.drop_source(0), do.drop_source(1)])


# --- trees ---------------------------------------------------------------------------------------

WORDS, BEAM = "one two three", 3


@pytest.fixture(scope="module")
def searched(translator) -> Translation:
    return translator.translate(WORDS, beam_size=BEAM, max_length=6, tree=True)


CHANGES: dict[str, tuple[do.Intervention, ...]] = {
    "none": (),
    "head": (do.ablate("cross", 1, 2),),
    "prefix": (do.prefix(["▁vier", "▁one"]),),
    "forbidden": (do.forbid("▁eins"), do.hide(1), do.choose(1, "▁drei")),
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_node_is_a_best_continuation_and_its_run_a_forced_run_of_its_prefix(translator, name):
    """The search done again by forced passes: at each step, the 2 × beam best of all
    continuations."""
    changes = CHANGES[name]
    base = translator.translate(
        WORDS, beam_size=BEAM, max_length=6, interventions=changes, tree=True
    )
    tree = base.tree
    beam = [None]
    for step in range(tree.nodes[-1].step + 1):
        here = [i for i, node in enumerate(tree.nodes) if node.step == step]
        assert {tree.nodes[i].parent for i in here} <= set(beam)
        if name in ("none", "head"):
            totals = []
            for parent in beam:
                ids, total = (
                    ((), 0.0)
                    if parent is None
                    else (tree.token_ids(parent), tree.nodes[parent].total)
                )
                forced = translator.force(WORDS, [*ids, 5], interventions=changes)
                totals.append(total + forced.distributions()[-1])
            best = torch.cat(totals).sort(descending=True).values[: 2 * BEAM].tolist()
            assert [tree.nodes[i].total for i in here] == pytest.approx(best, abs=1e-4)
        beam = [i for i in here if tree.nodes[i].state == NodeState.KEPT]
        assert len(beam) <= BEAM
    for i in range(0, len(tree.nodes), 2):
        ids = tree.token_ids(i)
        run = retrace(translator, base, node=i)
        own = translator.force(WORDS, ids, interventions=tuple(reached(changes, len(ids))))
        assert run.target_ids == own.target_ids == ids
        assert run.log_probs == pytest.approx(own.log_probs, abs=1e-5)
        assert sum(run.log_probs) == pytest.approx(tree.nodes[i].total, abs=1e-5)
        assert run.attention.audit().passed
        for one, other in zip(weights_of(run), weights_of(own), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
        alternatives = [
            [[a.token_id for a in s.alternatives] for s in each.steps] for each in (run, own)
        ]
        assert alternatives[0] == alternatives[1]


def test_the_tree_changes_nothing_and_its_winner_is_the_translation(translator, searched):
    plain = translator.translate(WORDS, beam_size=BEAM, max_length=6)
    tree = searched.tree
    assert (plain.tree, plain.target_ids, plain.log_probs) == (
        None,
        searched.target_ids,
        searched.log_probs,
    )
    assert tree.token_ids(tree.winner) == searched.target_ids
    run = retrace(translator, searched, node=tree.winner)
    for one, other in zip(weights_of(run), weights_of(searched), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    assert run.method == searched.method == "beam-3"
    with pytest.raises(IndexError, match="no node 1000"):
        retrace(translator, searched, node=1000)
    with pytest.raises(ValueError, match="tree=True"):
        retrace(translator, plain, node=0)


@pytest.mark.parametrize("changes", [(), (do.ablate("cross", 1, 2), do.choose(1, "▁drei"))])
def test_greedy_search_runs_beside_the_tree_with_the_same_changes(translator, changes):
    tree = translator.translate(
        WORDS, beam_size=BEAM, max_length=6, interventions=changes, tree=True
    ).tree
    greedy = translator.translate(WORDS, max_length=6, interventions=changes)
    assert tuple(tree.stream_greedy()) == greedy.target_tokens
    assert not list(tree.stream_greedy()), "it was read"
    assert (tree.greedy.token_ids, tree.greedy.tokens) == (greedy.target_ids, greedy.target_tokens)
    assert tree.greedy.log_probs == pytest.approx(greedy.log_probs, abs=1e-6)
    assert tree.greedy.total == pytest.approx(sum(greedy.log_probs))


def test_the_score_of_a_call_is_the_formula_of_length(translator):
    options = {"length_penalty": 0.6, "length_offset": 5, "tree": True}
    tree = translator.translate(WORDS, beam_size=BEAM, max_length=6, **options).tree
    for node in (*tree.nodes, tree.greedy):
        length = node.step + 1 if hasattr(node, "step") else len(node.tokens)
        assert node.score == pytest.approx(node.total / ((5 + length) / 6) ** 0.6)
    assert tree.nodes[tree.winner].score == max(tree.nodes[i].score for i in tree.hypotheses)


@pytest.mark.parametrize("capture", [True, False])
def test_a_run_that_functions_changed_is_not_traced_again(translator, capture):
    hooks = {"decoder.1.cross_attention.weights": lambda weights, _: weights}
    run = translator.translate(WORDS, max_length=3, hooks=hooks, capture=capture)
    with pytest.raises(
        ValueError, match=r"Functions changed .* \(decoder\.1\.cross_attention\.weights\)"
    ):
        retrace(translator, run)


# --- draws ---------------------------------------------------------------------------------------
