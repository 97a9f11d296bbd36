"""The most telling step and the glosses: on maps drawn by hand, on closed-form models, on the bundled one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from closed_form import CASES

from explorer.lenses.words.function_words import TARGET_LANGUAGES
from explorer.lenses.words.groups import reading_groups
from explorer.lenses.words.telling import CONTENT, glosses, sort_of, telling_step, text_words
from transformer.text.pairs import read_pairs
from transformer.translator import Translator, load_translator

ROOT = Path(__file__).resolve().parents[4]
MODEL, SAMPLE = ROOT / "assets" / "models" / "en-de", ROOT / "assets" / "sample" / "tatoeba-en-de.tsv.gz"
SOURCE = ("▁Yesterday", "▁I", "▁bought", "▁a", "▁book", ".", "</s>")
TARGET = ("▁Gestern", "▁habe", "▁ich", "▁ein", "▁Buch", "▁ge", "kauft", ".", "</s>")
PARTNERS = (0, 2, 1, 3, 4, 2, 2, 5, 6)
"""The source piece that each row attends to."""
TOLD = 100
"""How many sentences of the sample are translated here; `benchmarks/opening.py` takes all of them."""


def attention(
    partners: tuple[int, ...] = PARTNERS, share: float = 0.9, keys: int = len(SOURCE)
) -> np.ndarray:
    """Weights with a share of each row on its partner, and the rest spread evenly."""
    weights = np.full((len(partners), keys), (1 - share) / (keys - 1), np.float32)
    weights[range(len(partners)), partners] = share
    return weights


def test_a_content_word_far_from_the_diagonal_is_the_most_telling():
    assert telling_step(attention(), SOURCE, TARGET) == TARGET.index("▁ge")


def test_a_link_that_the_better_aligner_lacks_tells_nothing():
    elsewhere = attention((*PARTNERS[:5], 3, 3, *PARTNERS[7:]))
    found = telling_step(attention(), SOURCE, TARGET, elsewhere)
    assert found != TARGET.index("▁ge")
    assert found == telling_step(elsewhere, SOURCE, TARGET, attention())
    assert telling_step(attention(), SOURCE, TARGET, attention()) == TARGET.index("▁ge")


def test_a_word_without_a_clear_partner_is_less_telling():
    weights = attention()
    weights[5:7] = 1 / len(SOURCE)
    assert telling_step(weights, SOURCE, TARGET) in {0, 4}


def test_neither_punctuation_nor_a_special_token_opens_however_much_it_attends():
    source, target = ("▁dog", "</s>"), ("▁Hund", ".", "</s>")
    weights = np.array([[0.4, 0.6], [1, 0], [1, 0]], np.float32)
    assert telling_step(weights, source, target) == 0
    assert telling_step(weights, source, (".", "▁Hund", "</s>")) == 1
    assert telling_step(weights, source, (".", "▁die", "</s>")) == 1


def test_without_a_word_the_next_best_sort_opens():
    source = ("▁!", "</s>")
    assert telling_step(np.full((2, 2), 0.5, np.float32), source, ("▁!", "</s>")) == 0
    assert telling_step(np.full((2, 2), 0.5, np.float32), source, ("<unk>", "▁…")) == 1
    assert telling_step(np.full((1, 2), 0.5, np.float32), source, ("</s>",)) == 0
    assert telling_step(np.zeros((0, 2), np.float32), source, ()) == 0


def test_each_word_is_glossed_by_its_partner_at_its_first_piece():
    found = glosses(attention(), SOURCE, TARGET)
    assert found == {0: "Yesterday", 1: "bought", 2: "I", 3: "a", 4: "book", 5: "bought"}


def test_a_word_that_rests_on_the_end_or_has_a_stronger_rival_has_no_gloss():
    resting = attention((0, 6, 1, 3, 4, 2, 2, 5, 6))
    assert 1 not in glosses(resting, SOURCE, TARGET)
    rivals = attention((4, 2, 1, 3, 4, 2, 2, 5, 6))
    rivals[0, 4] = 0.8
    found = glosses(rivals, SOURCE, TARGET)
    assert 0 not in found
    assert found[4] == "book"


@pytest.mark.parametrize("name", CASES)
def test_closed_form_models_gloss_each_word_with_the_word_that_their_head_reads(
    closed_form_models: dict[str, Path], name: str
):
    run = load_translator(closed_form_models[name]).translate(CASES[name].sentence)
    weights = run.attention.weights("cross", 0, 0)
    found = glosses(weights, run.source_tokens, run.target_tokens)
    known = CASES[name].keys("cross", 0)
    words = {each.start for each in text_words(run.target_tokens)}
    assert found
    assert found == {
        place: run.source_tokens[known[place]].removeprefix("▁") for place in found if place in words
    }


@pytest.fixture(scope="module")
def bundled() -> Translator:
    return load_translator(MODEL)


@pytest.mark.skipif(not MODEL.is_dir(), reason="the bundled model is not here")
def test_sentences_of_the_sample_open_on_a_content_word_wherever_there_is_one(bundled: Translator):
    head = bundled.heads["default"]["cross"]
    opened = 0
    for pair in read_pairs(SAMPLE)[:TOLD]:
        run = bundled.translate(pair.source, beam_size=1)
        step = telling_step(run.attention.weights("cross", *head), run.source_tokens, run.target_tokens)
        sorts = {
            each.start: sort_of(each.text, TARGET_LANGUAGES) for each in reading_groups(run.target_tokens)
        }
        assert sorts[step] == max(sorts.values()), run.text
        opened += sorts[step] == CONTENT
    assert opened >= 0.95 * TOLD
