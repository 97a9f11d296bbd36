"""The blind lists: what was judged is what the bundled models write, and the cards state the shares."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from transformer import load_translator

ROOT = Path(__file__).parents[1]
LISTS = {"judged.tsv": (None, "en-de"), "judged-en-pt.tsv": ("firefox-en-pt", "en-pt")}
"""The models whose translations a list has; None for one that is not bundled."""


def rows(name: str) -> list[list[str]]:
    return [line.split("\t") for line in (ROOT / "tests" / "blind" / name).read_text("utf-8").splitlines()]


@pytest.mark.parametrize("name", LISTS)
def test_every_sentence_of_the_list_was_judged_twice(name: str):
    written = (ROOT / "tests/blind/sentences.tsv").read_text("utf-8").splitlines()
    assert ["\t".join(row[:2]) for row in rows(name)] == written
    assert {judged for row in rows(name) for judged in (row[3], row[5])} == {"yes", "no"}


@pytest.mark.parametrize("name", LISTS)
def test_equal_translations_were_judged_alike(name: str):
    assert not [row[1] for row in rows(name) if row[2] == row[4] and row[3] != row[5]]


@pytest.mark.parametrize(
    ("name", "column", "model"),
    [(name, 2 + 2 * i, model) for name, models in LISTS.items() for i, model in enumerate(models) if model],
)
def test_the_judged_translations_are_those_of_the_bundled_model(name: str, column: int, model: str):
    judged = rows(name)
    translator = load_translator(ROOT / "assets" / "models" / model)
    written = translator.translate_all([row[1] for row in judged], beam_size=1)
    assert [row[1] for row, text in zip(judged, written, strict=True) if text != row[column]] == []


@pytest.mark.parametrize(
    ("name", "other"), [("judged.tsv", "older model"), ("judged-en-pt.tsv", "Firefox's model")]
)
def test_the_card_states_the_shares(name: str, other: str):
    card = " ".join((ROOT / "assets" / "models" / LISTS[name][1] / "README.md").read_text("utf-8").split())
    judged = rows(name)
    older, newer = (Counter(row[0] for row in judged if row[column] == "yes") for column in (3, 5))
    all_of = Counter(row[0] for row in judged)
    assert f"{newer.total()} of the {len(judged)} sentences" in card
    assert f"{older.total()} by the {other}" in card or f"{older.total()} by {other}" in card
    for kind, count in all_of.items():
        assert f"{kind} {newer[kind]} of {count} ({older[kind]})" in card
