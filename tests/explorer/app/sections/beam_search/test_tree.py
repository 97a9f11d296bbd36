"""The sentences on what beam search finds, for trees made by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from explorer.app.sections.beam_search.beam import FATES, comparison, note
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


P_A, P_B = math.log(0.36), math.log(0.3)


@pytest.mark.parametrize(
    ("first", "greedy", "penalty", "expected"),
    [
        (0.7, ((4, 0.7), (2, 0.9)), 1.0, "nothing better here than greedy search; second comes “ja”"),
        (
            *(0.4, ((3, 0.6), (2, 0.5)), 1.0),
            "They part at step 1: greedy search takes “ja” (60\u00a0%), the beam also keeps “nein” "
            "(40\u00a0%). The tokens after that step make up for it: "
            f"Σ log p is −{-P_A:.2f} against −{-P_B:.2f}.",
        ),
        (0.4, ((3, 0.6),), 3.0, "less probable, but its score is better: Σ log p is −1.02 against −0.51."),
        (0.4, ((3, 0.99), (2, 0.99)), 1.0, "fell out of the beam, although it ends with the better score"),
        (0.4, ((4, 0.4),), 0.0, "They part at step 2, where one of them has ended."),
    ],
)
def test_what_the_beam_found_beside_greedy_search_is_said(
    first: float, greedy: tuple[tuple[int, float], ...], penalty: float, expected: str
):
    said = comparison(tree(first, greedy, penalty), text)
    assert expected in said


@pytest.mark.parametrize("state", NodeState)
def test_every_fate_has_its_words(state: NodeState):
    assert all(FATES[state])


def test_a_hover_text_says_the_output_so_far_and_its_numbers():
    assert note(tree(0.4, ((3, 0.6), (2, 0.5))), 1, text) == (
        "nein · step 1\nkept: the next step extends it\n"
        "probability here 40\u00a0% (log p −0.92)\nΣ log p −0.92 · score −0.916\nnein"
    )
