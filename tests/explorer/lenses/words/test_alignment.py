"""Links between words: from attention, of two directions joined, in gold files; their error counted
again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.lenses.words.alignment import diagonal, link_words, score, text_words, word_weights
from explorer.lenses.words.links import GoldPair, Links, read_gold
from transformer.text.pairs import DataError
from transformer.text.words import EOS, Group, word_groups


def links(text: str) -> Links:
    return frozenset((int(link[0]), int(link[2])) for link in text.split())


def pair(sure: Links, possible: Links, size: tuple[int, int] = (5, 4)) -> GoldPair:
    return GoldPair(("a",) * size[0], ("x",) * size[1], sure, sure | possible)


# --- the error -----------------------------------------------------------------------------------

CELLS = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=9)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=3))
def test_the_error_counts_the_links_of_all_pairs_together(
    texts: list[tuple[Links, Links, Links]],
) -> None:
    scored = score([links for links, _, _ in texts], [pair(sure, more) for _, sure, more in texts])
    count = sum(len(found) for found, _, _ in texts)
    sure = sum(link in found for found, sure, _ in texts for link in sure)
    possible = sum(link in sure or link in more for found, sure, more in texts for link in found)
    wanted = sum(len(sure) for _, sure, _ in texts)
    error = 1 - (sure + possible) / (count + wanted or 1)
    assert (scored.aer, scored.precision, scored.recall, scored.links) == pytest.approx(
        (error, possible / (count or 1), sure / (wanted or 1), count)
    )


def test_the_diagonal_links_relative_places_and_each_pair_needs_an_alignment() -> None:
    none = frozenset[tuple[int, int]]()
    assert [diagonal(pair(none, none, size)) for size in ((4, 2), (3, 2))] == [
        links("1-0 3-1"),
        links("0-0 2-1"),
    ]
    with pytest.raises(ValueError, match="argument"):
        score([], [pair(none, none)])


# --- from attention ------------------------------------------------------------------------------

SOURCE = ("▁a", "▁b", "b", "b", "▁c", EOS)
TARGET = ("▁x", "x", "▁y", "▁z", "z", "z")


def cell(weights: np.ndarray, query: Group, key: Group) -> float:
    """The mean over the pieces of a query word of the sum over those of a key word."""
    return float(np.mean([weights[row, list(key.indices)].sum() for row in query.indices]))


@pytest.mark.parametrize("seed", range(6))
def test_weights_of_words_are_sums_over_keys_and_means_over_queries_and_links_are_picked_from_them(
    seed: int,
):
    weights = np.random.default_rng(seed).dirichlet(np.ones(6), size=(2, 6)).astype(np.float32)
    sides = word_groups(SOURCE), word_groups(TARGET)
    assert [word.text for word in text_words(sides[0])] == ["a", "bbb", "c"]
    assert word_weights(weights, sides[0], sides[1], rows="predicted").sum(-1) == pytest.approx(1)
    source = text_words(sides[0])
    for rows, later in (("predicted", 0), ("read", 1)):
        merged = word_weights(weights, source, sides[1], rows=rows)  # type: ignore[arg-type]
        read = np.concatenate([weights[:, later:], np.zeros((2, later, 6))], axis=1)
        expected = np.array(
            [[[cell(head, j, i) for i in source] for j in sides[1]] for head in read]
        )
        assert merged == pytest.approx(expected, abs=1e-6)
        best = [{(int(row.argmax()), j) for j, row in enumerate(head)} for head in expected]
        back = [{(i, int(column.argmax())) for i, column in enumerate(head.T)} for head in expected]
        assert link_words(merged) == best
        assert link_words(merged, "mutual") == [
            one & other for one, other in zip(best, back, strict=True)
        ]


def test_a_word_without_weight_has_no_link() -> None:
    weights = np.array([[[0.5, 0.25, 0.25], [0.5, 0.125, 0.375], [0, 0, 0]]], np.float32)
    assert link_words(weights) == [links("0-0 0-1")]
    assert link_words(weights, "mutual") == [links("0-0")]


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", None),
        ("a\tb", "found 2 columns"),
        ("a\tb\t0:0", "'0:0' is not a link"),
        ("a\tb\t0-1", "points outside the sentence"),
        ("a\tb\t1p0", "points outside the sentence"),
        ("\tb\t0-0", "the source is empty"),
        ("a\t\t0-0", "the target is empty"),
    ],
)
def test_sure_and_possible_links_are_read_and_a_bad_line_is_named(tmp_path, line, message):
    path = tmp_path / "gold.tsv"
    path.write_text(f"a b c\tx y\t0-0 2p1\n{line}\n", encoding="utf-8")
    if message is None:
        assert read_gold(path) == [
            GoldPair(("a", "b", "c"), ("x", "y"), links("0-0"), links("0-0 2-1"))
        ]
        path.write_text("\n", encoding="utf-8")
    with pytest.raises(
        DataError, match=rf"gold\.tsv:2: .*{message}" if message else "the file is empty"
    ):
        read_gold(path)
