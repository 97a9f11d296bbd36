from __future__ import annotations

import re
from pathlib import Path

import pytest

from explorer.lenses.words.alignment import diagonal, score
from explorer.lenses.words.links import GoldPair, read_gold
from transformer.text.pairs import read_pairs

FOLDER = Path(__file__).parents[4] / "assets" / "sample"
PAIRS = read_pairs(FOLDER / "tatoeba-en-de.tsv.gz")
GOLD = read_gold(FOLDER / "alignments.tsv")


def test_the_sample_is_small_and_its_english_sentences_differ() -> None:
    assert len(PAIRS) <= 500
    assert len({pair.source for pair in PAIRS}) == len(PAIRS)
    assert "CC BY 2.0 FR" in (FOLDER / "ATTRIBUTION.txt").read_text(encoding="utf-8")


def test_gold_sentences_are_pairs_of_the_sample() -> None:
    def apart(text: str) -> tuple[str, ...]:
        return tuple(re.findall(r"\w+|[^\w\s]", text))

    known = {(apart(pair.source), apart(pair.target)) for pair in PAIRS}
    assert {(pair.source, pair.target) for pair in GOLD} <= known
    assert all(5 <= len(pair.source) <= 12 for pair in GOLD)


@pytest.mark.parametrize("pair", GOLD, ids=lambda pair: " ".join(pair.source))
def test_gold_links_stay_inside_and_leave_only_commas_alone(pair: GoldPair) -> None:
    assert all(i < len(pair.source) and j < len(pair.target) for i, j in pair.possible)
    for words, side in ((pair.source, 0), (pair.target, 1)):
        linked = {link[side] for link in pair.possible}
        assert {word for place, word in enumerate(words) if place not in linked} <= {","}


def test_the_diagonal_is_no_good_alignment_of_the_sample() -> None:
    assert score(map(diagonal, GOLD), GOLD).aer > 0.35
