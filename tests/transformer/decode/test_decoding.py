"""Search, sampling and trees: against a textbook's with lists, transformers' rules, and by hand."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from random_models import random_config, random_ids, random_model
from torch import Tensor

from transformer import interventions as do
from transformer.beam import SearchTree, beam_search, search_tree
from transformer.decoding import (
    BLOCK,
    DecodingState,
    Hypothesis,
    NodeState,
    SearchRules,
    constrained,
    decode,
    finish,
    largest,
)
from transformer.interventions import InterventionError
from transformer.sampling import Sampling

EOS = 2


@pytest.fixture(scope="module", params=["pre", "post"])
def model(request):
    return random_model(norm=request.param, vocab_size=12, tied_embeddings=False, seed=3)


def sources(batch: int = 4) -> Tensor:
    ids = random_ids(batch, 7, vocab_size=12)
    for row in range(1, batch):
        ids[row, 7 - row :] = 0
    return ids


def unpadded(row: Tensor) -> Tensor:
    return row[row != 0][None]


def searched(
    model: Any, ids: Tensor, limit: Any, beam: int, *rules: SearchRules
) -> list[Hypothesis]:
    """What a beam finds, or greedy search if it has no width."""
    state = DecodingState(model, ids)
    return finish(beam_search(state, limit, beam, *rules) if beam else decode(state, limit))


def log_prob(model: Any, src_ids: Tensor, token_ids: Any) -> list[float]:
    distribution = DecodingState(model, src_ids).forced([token_ids])[0]
    return [float(distribution[place, token]) for place, token in enumerate(token_ids)]


DIVISORS = {0: lambda n, alpha: n**alpha, 5: lambda n, alpha: (5 + n) ** alpha / (5 + 1) ** alpha}
"""What divides Σ log p: in most libraries, and of Wu et al. 2016, equation 14."""


def reference_beam(model, src_ids, max_length, beam_size, penalty, divisor):
    """Beam search as in a textbook: uncached, one sentence, lists."""
    state = DecodingState(model, src_ids)
    running = [((), 0.0)]
    finished = []
    for length in range(1, max_length + 1):
        candidates = []
        for tokens, total in running:
            row = state.forced([[*tokens, 0]])[0, -1]
            candidates += [((*tokens, token), total + float(p)) for token, p in enumerate(row)]
        candidates = sorted(candidates, key=lambda candidate: -candidate[1])[: 2 * beam_size]
        ended = [length == max_length or tokens[-1] == EOS for tokens, _ in candidates]
        for (tokens, total), is_end in list(zip(candidates, ended, strict=True))[:beam_size]:
            if is_end:
                finished.append((total / divisor(length, penalty), tokens))
        running = [pair for pair, is_end in zip(candidates, ended, strict=True) if not is_end][
            :beam_size
        ]
        finished = sorted(finished, reverse=True)[:beam_size]
        full = len(finished) == beam_size
        if not running or (full and running[0][1] / divisor(length, penalty) <= finished[-1][0]):
            break
    return finished[0]


@pytest.mark.parametrize("beam_size", [1, 2, 5, 20])
@pytest.mark.parametrize(("penalty", "offset"), [(0.0, 0), (1.0, 0), (2.0, 5)])
def test_beam_search_equals_an_uncached_search_with_lists(model, beam_size, penalty, offset):
    rules = SearchRules(length_penalty=penalty, length_offset=offset)
    for row in sources(3):
        src_ids = unpadded(row)
        (output,) = searched(model, src_ids, 8, beam_size, rules)
        score, tokens = reference_beam(model, src_ids, 8, beam_size, penalty, DIVISORS[offset])
        assert output.token_ids == tokens
        assert output.score == pytest.approx(score, abs=1e-5)


@pytest.mark.parametrize("beam_size", [0, 1, 2, 4])
def test_a_batch_decodes_as_its_sentences_alone_to_the_end_or_the_limit(model, beam_size):
    limits = [9, 3, 6, 1]
    together = searched(model, sources(), limits, beam_size)
    for row, limit, output in zip(sources(), limits, together, strict=True):
        (alone,) = searched(model, unpadded(row), limit, beam_size)
        assert output.token_ids == alone.token_ids
        for other in (alone.log_probs, log_prob(model, unpadded(row), output.token_ids)):
            assert output.log_probs == pytest.approx(other, abs=1e-5)
        length = len(output.token_ids) if beam_size else 1
        assert output.score == pytest.approx(sum(output.log_probs) / length, abs=1e-5)
        assert EOS not in output.token_ids[:-1]
        assert output.token_ids[-1] == EOS or len(output.token_ids) == limit
        if beam_size == 1:
            (greedy,) = searched(model, unpadded(row), limit, 0)
            assert (alone.token_ids, alone.log_probs) == (greedy.token_ids, greedy.log_probs)


def test_alternatives_are_the_best_of_the_distribution_in_order(model):
    src_ids = sources(1)
    steps = list(decode(DecodingState(model, src_ids), 4))
    (distribution,) = DecodingState(model, src_ids).forced([[node.token_id for (node,) in steps]])
    for (node,), row in zip(steps, distribution, strict=True):
        best = row.sort(descending=True)
        assert node.candidates.log_probs == pytest.approx(best.values[:10].tolist(), abs=1e-5)
        assert [*node.candidates.ids] == best.indices[:10].tolist()
        assert node.candidates.ids[0] == node.token_id
        assert sum(row.exp()) == pytest.approx(1, abs=1e-5)


def test_a_beam_of_impossible_width_is_refused(model):
    with pytest.raises(ValueError, match="beam_size"):
        finish(beam_search(DecodingState(model, sources(1)), 3, 65))


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("limits", [3, [3, 6]])
def test_the_last_token_before_the_limit_is_the_forced_one(model, beam_size, limits):
    rules = SearchRules(forced_end=EOS, forbidden=((EOS,),))
    outputs = searched(model, sources(1 if limits == 3 else 2), limits, beam_size, rules)
    ends = [(len(output.token_ids), output.token_ids[-1]) for output in outputs]
    assert ends == [(3, EOS), (6, EOS)][: len(outputs)]


@pytest.mark.parametrize("width", [1, 3 * BLOCK + 7, 65 * BLOCK, 80 * BLOCK + 1])
@pytest.mark.parametrize("count", [1, 10, 70])
def test_the_largest_of_a_row_are_those_of_a_full_sort(width, count):
    rows = torch.rand(3, width, generator=torch.Generator().manual_seed(width)).log()
    rows[0, width // 3 :] = -torch.inf
    values, places = largest(rows, min(count, width))
    expected = rows.sort(dim=1, descending=True).values[:, :count]
    assert torch.equal(values, expected)
    assert torch.equal(rows.gather(1, places), expected)
    assert all(len(set(row)) == len(row) for row in places.tolist())


# --- rules ---------------------------------------------------------------------------------------

PIECES, START = 12, 11


def barred(rules: SearchRules, written: list[int]) -> set[int]:
    log_probs = torch.randn(1, PIECES).log_softmax(-1)
    allowed, _ = rules.choices(log_probs, [(START, *written)], [False], len(written))
    free = ~allowed.isneginf()
    assert torch.equal(allowed[free], log_probs[free])
    return {*torch.nonzero(~free[0]).flatten().tolist()}


def test_something_is_always_left_to_choose():
    rules = SearchRules(no_repeat=1, min_tokens=50, end_id=EOS)
    assert barred(rules, [each for each in range(PIECES) if each not in (EOS, START)]) == set()


@pytest.mark.parametrize("fewest", [0, 1, 3])
def test_the_end_may_be_written_right_after_the_fewest_tokens_and_not_before(fewest):
    rules = SearchRules(min_tokens=fewest, end_id=EOS)
    texts = [[A] * length for length in range(fewest + 2)]
    assert [barred(rules, written) for written in texts] == [{EOS}] * fewest + [set()] * 2
    tree = grow(12, 6, min_tokens=fewest, end_id=EOS)
    ended = [ids for ids in map(tree.token_ids, tree.hypotheses) if ids[-1] == EOS]
    assert min(ids.index(EOS) for ids in ended) == max(1, fewest)  # nothing ends after the start


@pytest.mark.parametrize(("rules", "token"), [({"forced_start": 5}, 5), ({"forced_end": 2}, 2)])
def test_a_token_that_the_model_s_rules_write_cannot_be_forbidden(rules, token):
    with pytest.raises(InterventionError, match=r"own rules put this token into every output"):
        constrained(SearchRules(**rules), [do.forbid(token)], int, 2)


# --- sampling ------------------------------------------------------------------------------------

SHARES = np.array([0.5, 0.25, 0.15, 0.1])
DISTRIBUTION = torch.tensor(SHARES).float().log()[None]
FILTERED: list[tuple[dict[str, Any], Any]] = [
    ({}, SHARES),
    ({"temperature": 0.5}, SHARES**2),
    ({"temperature": 0.001}, [1, 0, 0, 0]),
    ({"temperature": 1e6}, [1, 1, 1, 1]),
    *(({"top_k": k}, SHARES * (np.arange(4) < k)) for k in (1, 2, 4, 99)),
    *(
        ({"top_p": p}, SHARES * (np.arange(4) < n))
        for p, n in ((0.01, 1), (0.49, 1), (0.6, 2), (0.85, 3), (1.0, 4))
    ),
    ({"temperature": 0.5, "top_k": 2}, SHARES**2 * [1, 1, 0, 0]),
    ({"temperature": 2.0, "top_k": 2}, SHARES**0.5 * [1, 1, 0, 0]),
]


@pytest.mark.parametrize(("options", "powers"), FILTERED, ids=str)
def test_temperature_top_k_and_top_p_follow_their_formulas_in_any_order(options, powers):
    expected = np.array(powers, float) / np.sum(powers)
    for order in ([0, 1, 2, 3], [2, 0, 3, 1]):
        probabilities = Sampling(**options).filtered(DISTRIBUTION[:, order])[0].numpy()
        np.testing.assert_allclose(probabilities, expected[order], atol=1e-5)
        assert ((probabilities == 0) == (expected[order] == 0)).all() or "temperature" in options


def test_samples_follow_the_distribution_and_the_seed(model):
    choose = Sampling(seed=1).chooser()
    draws = torch.stack([choose(DISTRIBUTION.expand(500, -1)) for _ in range(8)]).flatten()
    np.testing.assert_allclose(draws.bincount(minlength=4) / len(draws), SHARES, atol=0.03)

    def drawn(sampling: Sampling | None, batch: int = 4) -> list[Hypothesis]:
        chooser = sampling.chooser() if sampling else None
        return finish(decode(DecodingState(model, sources(batch)), 12, chooser))

    assert drawn(Sampling(seed=1)) == drawn(Sampling(seed=1)) != drawn(Sampling(seed=2))
    assert drawn(Sampling(top_k=1)) == drawn(None)
    (output,) = drawn(Sampling(temperature=2.0, top_k=3, seed=4), 1)
    own = log_prob(model, sources(1), output.token_ids)  # and not those that were filtered
    assert output.log_probs == pytest.approx(own, abs=1e-5)


def test_an_impossible_way_of_sampling_is_refused_by_name():
    wrong = {"temperature": (0.0, 1e-40, math.inf), "top_k": (0,), "top_p": (1.1,)}
    wrong |= {"seed": (2**63, np.float64(8), np.bool_(True), np.array([8]))}
    for name, value in ((name, value) for name, values in wrong.items() for value in values):
        with pytest.raises(ValueError, match=rf"{name} is .*; it must be"):
            Sampling(**{name: value})


def test_temperature_0_is_said_to_be_greedy_search():
    with pytest.raises(
        ValueError, match=r"^temperature is 0; .* greedy search, so leave sampling out\.$"
    ):
        Sampling(0)


# --- the tree of a search, worked out by hand ----------------------------------------------------

BOS, A, B, C = 1, 3, 4, 5
NEXT = {
    BOS: {A: 0.5, B: 0.4, C: 0.1},
    A: {C: 0.4, B: 0.35, EOS: 0.25},
    B: {C: 0.9, EOS: 0.1},
    C: {EOS: 0.6, A: 0.4},
}
"""A hand-made model: the probabilities of the next token, given the last one."""
KEPT, FINISHED, OUTRANKED, DISPLACED, CUT = NodeState
KNOWN = {
    (A,): (0.5, KEPT),
    (B,): (0.4, KEPT),
    (C,): (0.1, OUTRANKED),
    (B, C): (0.36, KEPT),
    (A, C): (0.2, KEPT),
    (A, B): (0.175, OUTRANKED),
    (A, EOS): (0.125, OUTRANKED),
    (B, C, EOS): (0.216, FINISHED),
    (B, C, A): (0.144, KEPT),
    (A, C, EOS): (0.12, OUTRANKED),
    (A, C, A): (0.08, KEPT),
    (B, C, A, C): (0.0576, CUT),
    (B, C, A, B): (0.0504, DISPLACED),
    (B, C, A, EOS): (0.036, OUTRANKED),
    (A, C, A, C): (0.032, OUTRANKED),
}
"""The tree of a beam of 2 and at most 4 tokens, worked out by hand: probability and state by
output."""


class HandMade(DecodingState):
    """Sequences whose model is `NEXT`."""

    def __init__(self) -> None:
        self.config = random_config(vocab_size=6)
        self.device = torch.device("cpu")
        self.sentences = 1
        self.start = torch.tensor([BOS])

    def log_probs(self, token_ids: torch.Tensor) -> torch.Tensor:
        rows = torch.zeros(len(token_ids), 6)
        for row, last in zip(rows, token_ids.tolist(), strict=True):
            for token_id, share in NEXT.get(last, {EOS: 1.0}).items():
                row[token_id] = share
        return rows.log()

    def select(self, rows: torch.Tensor, *, same_source: bool) -> None:
        """The last token is all that this model knows."""


def grow(beam_size: int = 2, limit: int = 4, **rules: object) -> SearchTree:
    """The tree of the hand-made model."""
    history = []
    asked = SearchRules(**rules)
    finish(beam_search(HandMade(), limit, beam_size, asked, history))

    def unasked() -> Hypothesis:
        raise AssertionError("nobody asked for greedy search")

    return search_tree(history, beam_size, asked, lambda ids: [f"t{i}" for i in ids], unasked)


def test_the_tree_of_a_hand_made_model_is_the_one_worked_out_by_hand():
    tree = grow()
    found = {tree.token_ids(i): (node.total, node.state) for i, node in enumerate(tree.nodes)}
    assert list(found) == list(KNOWN)
    for output, (share, state) in KNOWN.items():
        assert found[output] == (pytest.approx(math.log(share), abs=1e-5), state), output


def test_every_node_has_its_token_share_and_score_and_the_winner_s_path_is_marked():
    tree = grow(length_penalty=0.5)
    for i, node in enumerate(tree.nodes):
        *before, last = (BOS, *tree.token_ids(i))
        assert (node.token_id, node.token, node.step) == (last, f"t{last}", len(before) - 1)
        assert node.log_prob == pytest.approx(math.log(NEXT[before[-1]][last]), abs=1e-5)
        assert node.score == pytest.approx(node.total / len(before) ** 0.5)
        assert node.ended == (last == EOS or len(before) == 4)
    tree = grow()
    assert tree.token_ids(tree.winner) == (B, C, EOS)
    assert [i for i, node in enumerate(tree.nodes) if node.won] == list(tree.path(tree.winner))
    assert [tree.token_ids(i) for i in tree.hypotheses] == [(B, C, EOS), (B, C, A, C), (B, C, A, B)]
    for output, inside in (((A, C, EOS), [A, C, EOS]), ((A, C, C), [A, C]), ((EOS,), [])):
        assert [tree.nodes[i].token_id for i in tree.along(output)] == inside


def test_hypotheses_still_open_when_the_search_ends_are_displaced():
    tree = grow(limit=20, early_stopping=True)
    displaced = {node.step for node in tree.nodes if node.state == DISPLACED and not node.ended}
    assert displaced == {tree.nodes[-1].step}
    last = [node for node in tree.nodes if node.step == tree.nodes[-1].step]
    assert {node.state for node in last if not node.ended} <= {DISPLACED, OUTRANKED}


@pytest.mark.parametrize(("early_stopping", "steps"), [(False, 3), ("never", 20)])
def test_a_search_that_never_stops_early_waits_for_what_a_longer_output_could_reach(
    early_stopping, steps
):
    """With α = 3, the best open sum is worse at its present length and better at the greatest."""
    tree = grow(limit=20, early_stopping=early_stopping, length_penalty=3.0, beam_size=1)
    assert tree.nodes[-1].step + 1 == steps


@pytest.mark.parametrize("penalty", [-3.0, -0.2, 0.0])
@pytest.mark.parametrize("beam_size", [2, 3])
def test_without_a_reward_for_length_an_open_output_is_judged_by_its_present_length(
    penalty, beam_size
):
    """With α ≤ 0 a longer output scores no better, so that the greatest length says nothing."""
    ends = [
        grow(beam_size, 20, early_stopping=stop, length_penalty=penalty).nodes[-1].step
        for stop in (False, "never")
    ]
    assert ends[0] == ends[1]
