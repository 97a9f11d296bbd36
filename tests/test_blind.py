"""The blind list: what was judged is what the bundled model writes, and the card states the shares."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from transformer import load_translator

ROOT = Path(__file__).parents[1]
MODEL = ROOT / "assets" / "models" / "en-de"
ROWS = [line.split("\t") for line in (ROOT / "tests/blind/judged.tsv").read_text("utf-8").splitlines()]


def test_every_sentence_of_the_list_was_judged_twice():
    written = (ROOT / "tests/blind/sentences.tsv").read_text("utf-8").splitlines()
    assert ["\t".join(row[:2]) for row in ROWS] == written
    assert {judged for row in ROWS for judged in (row[3], row[5])} == {"yes", "no"}


def test_equal_translations_were_judged_alike():
    assert not [row[1] for row in ROWS if row[2] == row[4] and row[3] != row[5]]


@pytest.mark.skipif(not MODEL.is_dir(), reason="the bundled model is not here")
def test_the_judged_translations_are_those_of_the_bundled_model():
    model = load_translator(MODEL)
    written = model.translate_all([row[1] for row in ROWS], beam_size=1)
    assert [row[1] for row, text in zip(ROWS, written, strict=True) if text != row[4]] == []


@pytest.mark.skipif(not MODEL.is_dir(), reason="the bundled model is not here")
def test_the_card_states_the_shares():
    card = " ".join((MODEL / "README.md").read_text("utf-8").split())
    older, newer = (Counter(row[0] for row in ROWS if row[column] == "yes") for column in (3, 5))
    all_of = Counter(row[0] for row in ROWS)
    assert f"{newer.total()} of the {len(ROWS)} sentences" in card
    assert f"{older.total()} by the older model" in card
    for kind, count in all_of.items():
        assert f"{kind} {newer[kind]} of {count} ({older[kind]})" in card
