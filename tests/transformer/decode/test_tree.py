"""The tree of a search, worked out by hand."""

import math

import pytest
import torch
from random_models import random_config

from transformer.beam import SearchTree, beam_search, search_tree
from transformer.decoding import DecodingState, Hypothesis, NodeState, SearchRules, finish

BOS, EOS, A, B, C = 1, 2, 3, 4, 5
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
"""The tree of a beam of 2 and at most 4 tokens, worked out by hand: probability and state by output."""


class HandMade(DecodingState):
    """Sequences whose model is `NEXT`."""

    def __init__(self) -> None:
        self.config = random_config(vocab_size=6)
        self.device, self.sentences, self.start = torch.device("cpu"), 1, torch.tensor([BOS])

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
    history, asked = [], SearchRules(**rules)
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
    assert displaced == {tree.steps - 1}
    last = [node for node in tree.nodes if node.step == tree.steps - 1]
    assert {node.state for node in last if not node.ended} <= {DISPLACED, OUTRANKED}


@pytest.mark.parametrize(("early_stopping", "steps"), [(False, 3), ("never", 20)])
def test_a_search_that_never_stops_early_waits_for_what_a_longer_output_could_reach(early_stopping, steps):
    """With α = 3, the best open sum is worse at its present length and better at the greatest."""
    tree = grow(limit=20, early_stopping=early_stopping, length_penalty=3.0, beam_size=1)
    assert tree.steps == steps
