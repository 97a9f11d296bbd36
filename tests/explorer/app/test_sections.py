"""Sentences of pages, on numbers made by hand: inside a head, of a search, of a training."""

import math
from collections.abc import Iterator

import pytest
import torch

from explorer.app.sections.beam_search.beam import comparison
from explorer.app.sections.inside.look import NAMES, notation
from explorer.app.sections.inside.steps import matrix_count
from explorer.app.sections.training.lesson import losses, parted
from explorer.lenses.targets.lesson import Position, TrainingView
from transformer.beam import SearchTree, TreeNode
from transformer.decoding import Node, NodeState, SearchRules

# --- inside a head -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "paper", "lecture"),
    [
        (
            r"OUTPUT = \sum_j WEIGHT_j v_j",
            r"\mathrm{head} = \sum_j w_j v_j",
            r"b = \sum_j \hat\alpha_j v^j",
        ),
        (r"q \cdot k_j + k_{j,i}", r"q \cdot k_j + k_{j,i}", r"q \cdot k^j + k^j_i"),
        (r"y_i = OWN_i \cdot SOURCE_j", r"y_i = x_i \cdot m_j", r"y^i = x^i \cdot a^j"),
        (r"SCORE_j = [k_j, {k'}_j]", r"s_j = [k_j, {k'}_j]", r"\alpha_j = [k^j, {k'}^j]"),
        (r"u^{\top} \tanh(W q) + W^O", r"u^{\top} \tanh(W q) + W^O", r"u^{\top} \tanh(W q) + W^o"),
    ],
)
def test_a_formula_is_written_once_for_two_notations(formula: str, paper: str, lecture: str):
    assert [notation(name, "cross").latex(formula) for name in ("paper", "lecture")] == [
        paper,
        lecture,
    ]


def test_the_paper_writes_rows_and_a_lecture_columns_with_shapes_that_fit():
    row = r"\underset{1 \times 8}{q} = \underset{1 \times 64}{x}\,\underset{64 \times 8}{W^Q} + \text{bias}"
    matrix = r"\underset{8 \times 64}{W^q}"
    column = (
        rf"\underset{{8 \times 1}}{{q}} = {matrix}\,\underset{{64 \times 1}}{{a}} + \text{{bias}}"
    )
    symbols = [notation(name, "encoder") for name in ("paper", "lecture")]
    assert [symbol.latex(symbol.product("q", "OWN", "Q", 64, 8)) for symbol in symbols] == [
        row,
        column,
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_no_two_things_share_a_letter(name: str, kind: str):
    symbols = notation(name, kind)
    letters = {
        symbols.x,
        symbols.source,
        symbols.score,
        symbols.weight,
        symbols.output,
        "q",
        "k",
        "v",
    }
    assert (symbols.x == symbols.source, len(letters)) == (
        (False, 8) if kind == "cross" else (True, 7)
    )


def test_heads_are_matrices_with_their_count():
    assert "3 · 8 + 1 = 25 matrices with 4 · 512² = 1,048,576 numbers" in matrix_count(512, 64, 8)
    assert "4 · 512 · 384 = 786,432" in matrix_count(512, 64, 6)


# --- a search ------------------------------------------------------------------------------------

WORDS = {2: "", 3: "ja", 4: "nein"}
FINISHED, KEPT = NodeState.FINISHED, NodeState.KEPT


def text_of(ids: list[int]) -> str:
    return " ".join(filter(None, (WORDS[each] for each in ids)))


def tree(first: float, greedy: tuple[tuple[int, float], ...], penalty: float = 1.0) -> SearchTree:
    """A search whose best output is "nein", and which also looked at "ja"; greedy search writes as
    given."""

    def node(
        token_id: int, step: int, parent: int | None, share: float, total: float, won: bool
    ) -> TreeNode:
        ended = step == 1
        return TreeNode(
            token_id=token_id,
            token="</s>" if ended else f"▁{WORDS[token_id]}",
            step=step,
            parent=parent,
            log_prob=math.log(share),
            total=math.log(total),
            score=math.log(total) / (step + 1) ** penalty,
            ended=ended,
            state=FINISHED if ended else KEPT,
            won=won,
        )

    nodes = (
        node(3, 0, None, 1 - first, 1 - first, won=False),  # ja
        node(4, 0, None, first, first, won=True),  # nein
        node(2, 1, 1, 0.9, first * 0.9, won=True),
        node(2, 1, 0, 0.5, (1 - first) * 0.5, won=False),
    )

    def run_greedy() -> Iterator[tuple[Node, str]]:
        before = Node(1)
        total = 1.0
        for token_id, share in greedy:
            total *= share
            step = before.step + 1
            written = Node(token_id, step, math.log(share), math.log(total), before)
            written.ended = step == 1
            written.score = written.total / (step + 1) ** penalty
            before = written
            yield written, "</s>" if written.ended else f"▁{WORDS[token_id]}"

    return SearchTree(nodes, 2, SearchRules(length_penalty=penalty), run_greedy)


PART = (
    "They part at step 1: greedy search takes “ja” (60\u00a0%), the beam also keeps “nein” "
    "(40\u00a0%). "
)
PART += "The tokens after that step make up for it: "
PART += f"Σ log p is −{-math.log(0.36):.2f} against −{-math.log(0.3):.2f}."


@pytest.mark.parametrize(
    ("first", "greedy", "penalty", "words"),
    [
        (
            0.7,
            ((4, 0.7), (2, 0.9)),
            1.0,
            "nothing better here than greedy search; second comes “ja”",
        ),
        (0.4, ((3, 0.6), (2, 0.5)), 1.0, PART),
        (
            0.4,
            ((3, 0.6),),
            3.0,
            "less probable, but its score is better: Σ log p is −1.02 against −0.51.",
        ),
        (
            0.4,
            ((3, 0.99), (2, 0.99)),
            1.0,
            "fell out of the beam, although it ends with the better score",
        ),
        (0.4, ((4, 0.4),), 0.0, "They part at step 2, where one of them has ended."),
    ],
)
def test_what_the_beam_found_beside_greedy_search_is_said(
    first, greedy, penalty: float, words: str
):
    assert words in comparison(tree(first, greedy, penalty), text_of)


# --- training ------------------------------------------------------------------------------------


def lesson(target: str, free: str, parting: int | None = None) -> TrainingView:
    """A lesson over letters; each letter is its own id."""
    positions = tuple(
        Position("<s>", f"▁{letter}", ord(letter), 0.5 * i, f"▁{letter}", 0.9)
        for i, letter in enumerate(target)
    )
    own = tuple(f"▁{letter}" for letter in free)
    return TrainingView(
        positions, torch.zeros(len(target), 2), own, tuple(map(ord, free)), 0.5, parting
    )


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (losses(lesson("abc", "abc")), "position 3, “c”, costs most: 1.00 nats"),
        (losses(lesson("a", "a")), "The only position, “a”"),
        (parted(lesson("axc", "abc", 1)), "**step 2**"),
        (parted(lesson("ab", "abc", 2)), "the target has ended"),
        (parted(lesson("abc", "ab", 2)), "its own has ended"),
    ],
)
def test_what_training_costs_and_where_both_part_is_said(said: str, words: str):
    assert words in said
