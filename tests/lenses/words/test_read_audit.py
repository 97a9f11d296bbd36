"""Merged words: cut a second way, and what is exchanged in them turns the badge."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lenses.words.read_audit import audit_merged, audit_read, read_checked, word_cuts
from lenses.words.reading import Reading, read_axis, read_map, read_view
from transformer import Window, load_translator
from transformer.text.words import Group, reading_groups

PIECES = ["▁", "▁the", "house", "s", ".", ",", "▁(", ")", "▁“", "”", "“", "'", "ll", "<unk>", "</s>", "<s>"]
PIECES += [
    "́",
    "\u200d",
    "👩",
    "🏽",
    "日",
    "本",
    "▁ไ",
    "▁-",
    "n't",
    "…",
    "£",
    "<0xE2>",
    "<0x80>",
    "<0x9C>",
    "<0xC3>",
    "<0xA9>",
    "<0x21>",
]
PIECES += ["<unk:£>", "▁<unk:“>", "<unk:”>"]
WORDS = [Reading(words=True), Reading(words=True, hide_special=True, hide_punctuation=True)]
PLAIN = [Reading(), Reading(hide_special=True), Reading(hide_punctuation=True)]
BUNDLED = Path(__file__).parents[3] / "assets" / "models" / "en-pt"
TEXT = "The doctor's old houses (unbelievably expensive ones) aren't for sale."


@pytest.fixture(scope="module")
def run(translator):
    return translator.translate("one two three four five", max_length=6)


def test_both_ways_cut_random_pieces_at_the_same_places():
    draw = random.Random(4)
    for _ in range(4000):
        pieces = [draw.choice(PIECES) for _ in range(draw.randint(1, 9))]
        assert word_cuts(pieces) == [0, *(group.stop for group in reading_groups(pieces))], pieces


@pytest.mark.parametrize("reading", [*WORDS, *PLAIN])
def test_random_maps_are_read_alike(reading):
    draw, numbers = random.Random(5), np.random.default_rng(5)
    for _ in range(150):
        rows, columns = ([draw.choice(PIECES) for _ in range(draw.randint(2, 9))] for _ in range(2))
        weights = numbers.random((len(rows), len(columns))).astype(np.float32)
        axes = read_axis(rows, reading), read_axis(columns, reading)
        mask = weights > 0.2
        drawn, seen, _ = read_map(weights, mask, *axes)
        assert audit_merged(reading, (rows, columns), (weights, mask), (drawn, seen)).passed


@pytest.mark.skipif(not BUNDLED.is_dir(), reason="the bundled models are not here")
@pytest.mark.parametrize("reading", [*WORDS, *PLAIN])
def test_words_of_a_trained_model_turn_red_if_anything_is_exchanged(reading):
    t = load_translator(BUNDLED).translate(TEXT)
    for kind in t.config.sites:
        view = t.map(kind, 1, 2)
        read = read_view(view, reading)
        assert audit_read(view, reading, read).passed
        for name in ("weights", "mask"):
            turned = replace(read, **{name: np.flip(getattr(read, name), 1)})
            assert not audit_read(view, reading, turned).passed or (turned.mask == read.mask).all()
        if reading.words:
            moved = (*read.key_tokens[1:], read.key_tokens[0])
            assert not audit_read(view, reading, replace(read, key_tokens=moved)).passed
            assert not audit_read(view, reading, cut_early(view, reading, read)).passed


def cut_early(view, reading, read):
    """The words with the first long one cut one piece early, in numbers, names and places alike."""
    columns = read_axis(view.key_tokens, reading)
    at = next(i for i, group in enumerate(columns.groups[:-1]) if len(group.indices) > 1)
    first, second = columns.groups[at : at + 2]
    groups = list(columns.groups)
    groups[at] = Group(first.start, first.stop - 1, first.text)
    groups[at + 1] = Group(first.stop - 1, second.stop, second.text)
    wrong = replace(columns, groups=tuple(groups))
    named = view.predicted_tokens if read.named == "predicted" else view.query_tokens
    weights, mask, _ = read_map(view.weights, view.mask, read_axis(named, reading), wrong)
    return replace(read, weights=weights, mask=mask, columns=wrong.visible)


@pytest.mark.parametrize("reading", [*WORDS, *PLAIN])
def test_a_window_is_read_alike(run, reading):
    view = run.map("cross", 0, 1, Window(1, 4, 2, 5))
    assert read_checked(view, reading).audit.passed
