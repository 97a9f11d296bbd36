"""The sentences on what beam search finds, for trees made by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from explorer.app.sections.beam_search.tree import FATES, found_sentence, note
from transformer.beam import SearchTree
from transformer.decoding import Node, NodeState, SearchRules

WORDS = {2: "", 3: "ja", 4: "nein"}
FINISHED, KEPT = NodeState.FINISHED, NodeState.KEPT


def text(ids: list[int]) -> str:
    return " ".join(filter(None, (WORDS[each] for each in ids)))


def tree(first: float, greedy: tuple[tuple[int, float], ...], penalty: float = 1.0) -> SearchTree:
    """A search whose best output is "nein", and which also looked at "ja"; greedy search writes as given."""

    def node(place: int, token_id: int, before: Node, share: float, total: float) -> Node:
        made = Node(token_id, before.step + 1, math.log(share), math.log(total), before, place=place)
        made.ended, made.won = made.step == 1, token_id == 4 or before.token_id == 4
        made.token = "</s>" if made.ended else f"▁{WORDS[token_id]}"
        made.score, made.state = made.total / (made.step + 1) ** penalty, FINISHED if made.ended else KEPT
        return made

    ja, nein = node(0, 3, Node(1), 1 - first, 1 - first), node(1, 4, Node(1), first, first)
    nodes = (ja, nein, node(2, 2, nein, 0.9, first * 0.9), node(3, 2, ja, 0.5, (1 - first) * 0.5))

    def run_greedy() -> Iterator[Node]:
        before, total = Node(1), 1.0
        for token_id, share in greedy:
            total *= share
            before = node(9, token_id, before, share, total)
            yield before

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
