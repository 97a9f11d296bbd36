"""The sentences on what beam search finds, for trees made by hand."""

from __future__ import annotations

import math
from collections.abc import Generator

import pytest

from explorer.app.views.search.tree import FATES, found_sentence, note
from transformer.beam import NodeState, Output, SearchTree, TreeNode
from transformer.decoding import SearchRules

WORDS = {2: "", 3: "ja", 4: "nein"}
FINISHED, KEPT = NodeState.FINISHED, NodeState.KEPT


def text(ids: list[int]) -> str:
    return " ".join(filter(None, (WORDS[each] for each in ids)))


def tree(first: float, greedy: tuple[tuple[int, float], ...], penalty: float = 1.0) -> SearchTree:
    """A search whose best output is "nein", and which also looked at "ja"; greedy search writes as given."""

    def node(token_id: int, step: int, parent: int | None, share: float, total: float) -> TreeNode:
        ended, won = step == 1, token_id == 4 or parent == 1
        token = "</s>" if ended else f"▁{WORDS[token_id]}"
        score, state = math.log(total) / (step + 1) ** penalty, FINISHED if ended else KEPT
        return TreeNode(
            token, token_id, step, parent, math.log(share), math.log(total), score, state, ended, won
        )

    nodes = (
        node(3, 0, None, 1 - first, 1 - first),
        node(4, 0, None, first, first),
        node(2, 1, 1, 0.9, first * 0.9),
        node(2, 1, 0, 0.5, (1 - first) * 0.5),
    )
    ids, shares = zip(*greedy, strict=True)
    log_probs = tuple(map(math.log, shares))
    score = sum(log_probs) / len(ids) ** penalty
    output = Output(tuple(f"▁{WORDS[each]}" if each != 2 else "</s>" for each in ids), ids, log_probs, score)

    def run_greedy() -> Generator[str, None, Output]:
        yield from ()
        return output

    return SearchTree(nodes, 2, SearchRules(length_penalty=penalty), run_greedy)


def test_an_output_that_both_find_is_said_once_with_the_second():
    said = found_sentence(tree(0.7, ((4, 0.7), (2, 0.9))), text)
    assert said.count("nein") == 1
    assert "nothing better here than greedy search" in said
    assert "second comes “ja”" in said


def test_where_the_two_part_and_what_each_token_had_is_said():
    said = found_sentence(tree(0.4, ((3, 0.6), (2, 0.5))), text)
    assert (
        "They part at step 1: greedy search takes “ja” (60\u00a0%), the beam also keeps “nein” (40\u00a0%)."
        in said
    )
    total = math.log(0.36), math.log(0.3)
    assert f"Σ log p is −{-total[0]:.2f} against −{-total[1]:.2f}" in said


def test_a_better_score_of_a_less_probable_output_is_called_that():
    said = found_sentence(tree(0.4, ((3, 0.6),), penalty=3.0), text)
    assert "less probable, but its score is better" in said


def test_a_greedy_output_that_the_beam_missed_is_owned_up_to():
    said = found_sentence(tree(0.4, ((3, 0.99), (2, 0.99))), text)
    assert "fell out of the beam" in said


@pytest.mark.parametrize("state", NodeState)
def test_every_fate_has_its_words(state: NodeState):
    assert FATES[state]


def test_a_hover_text_says_the_output_so_far_and_its_numbers():
    found = tree(0.4, ((3, 0.6), (2, 0.5)))
    lines = note(found, 1, text).split("\n")
    assert lines[0] == "nein · step 1"
    assert "40\u00a0%" in lines[2]
    assert lines[-1] == "nein"
