"""Maps and sentences read in words: merged and hidden cells, the telling step, glosses and
claims."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from closed_form import CASES
from marked import marked

from explorer.lenses.words import languages
from explorer.lenses.words import reading as reading_module
from explorer.lenses.words.groups import find_word, reading_groups
from explorer.lenses.words.reading import Reading, ReadView, read_view, reading_window
from explorer.lenses.words.telling import (
    glosses,
    heads_that_show,
    shared_heads,
    telling_step,
)
from transformer.config import AttentionKind
from transformer.storage.description import read_header
from transformer.text.words import Group, is_punctuation
from transformer.view import AuditReport, Check, HeadView, Window

ROOT = Path(__file__).resolve().parents[4]
MODEL = ROOT / "assets" / "models" / "en-de"
WORDS = Reading(words=True)
PARTS = (
    "▁die",
    "▁Mäu",
    "se",
    ",",
    "▁(",
    "jag",
    "te",
    ")",
    ".",
    "▁猫",
    "が",
    "▁",
    "<0xC3>",
    "<0xA9>",
    "</s>",
)
KINDS = ("encoder", "decoder", "cross")


PASSED = AuditReport((Check("row sums", 0.0, 1.0),))


def view(kind: str, tokens: tuple[str, ...], seed: int = 0, keys: tuple[str, ...] = ()) -> HeadView:
    """A head with random weights; causal in the decoder, which reads each token one row later."""
    tokens = marked(tokens)
    keys = marked(keys)
    reads = tokens if kind == "encoder" else marked(("<s>", *tokens[:-1]))
    keys = keys or reads
    shape = len(reads), len(keys)
    mask = np.tri(*shape, dtype=bool) if kind == "decoder" else np.ones(shape, dtype=bool)
    weights = np.random.default_rng(seed).random(shape, dtype=np.float32) * mask
    weights /= weights.sum(1, keepdims=True)
    vectors = np.zeros((max(shape), 4), np.float32)
    return HeadView(
        kind=AttentionKind(kind), layer=0, head=1, model="m", norm="pre", query_tokens=reads,
        predicted_tokens=None if kind == "encoder" else tokens, key_tokens=keys,
        window=Window(2, 2 + shape[0], 5, 5 + shape[1]), scores=np.log(np.where(mask, weights, 1)), mask=mask,
        weights=weights, query=vectors, key=vectors, value=vectors, output=vectors, report=PASSED,
    )  # fmt: skip


def random_tokens(seed: int, length: int = 30) -> tuple[str, ...]:
    draw = np.random.default_rng(seed)
    return marked((*(PARTS[i] for i in draw.integers(0, len(PARTS) - 1, length)), "</s>"))


# --- maps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "reading",
    [
        Reading(),
        WORDS,
        Reading(False, True),
        Reading(False, False, True),
        Reading(True, rows="read"),
    ],
    ids=str,
)
def test_every_cell_is_a_sum_over_keys_and_a_mean_over_queries_and_nothing_is_renormalised(
    kind: str, reading: Reading, seed: int
) -> None:
    keys = random_tokens(seed + 99, 20) if kind == "cross" else ()
    whole = view(kind, random_tokens(seed), seed, keys)
    read = read_view(whole, reading)
    assert np.allclose(read.weights.sum(1) + read.hidden, 1, atol=1e-5)
    assert (read.scores is None) == reading.words
    assert read.derived == (read.weights.shape != whole.weights.shape or reading.words)
    for (i, j), weight in np.ndenumerate(read.weights):
        cells = np.ix_(
            np.subtract(read.rows[i].indices, 2), np.subtract(read.columns[j].indices, 5)
        )
        assert weight == pytest.approx(whole.weights[cells].sum(1).mean(), abs=1e-5)
        assert read.mask[i, j] == whole.mask[cells].any()
    named = whole.predicted_tokens if kind == "cross" and not reading.rows else whole.query_tokens
    for axis, tokens, first in ((read.rows, named, 2), (read.columns, whole.key_tokens, 5)):
        single = [Group(i, i + 1, t.strip("▁")) for i, t in enumerate(tokens)]
        parts = reading_groups(tokens) if reading.words else single
        hides = [
            (reading.hide_special and tokens[part.start] in ("<s>", "</s>"))
            or (reading.hide_punctuation and is_punctuation(part.text))
            for part in parts
        ]
        left = [each.indices for each, hidden in zip(parts, hides, strict=True) if not hidden]
        assert [range(each.start - first, each.stop - first) for each in axis] == left


FORGED: dict[str, Callable[[ReadView], dict[str, object]]] = {
    "key labels in reverse": lambda read: {"key_tokens": read.key_tokens[::-1]},
    "row labels in reverse": lambda read: {"query_tokens": read.query_tokens[::-1]},
    "predicted labels moved": lambda read: {"predicted_tokens": read.predicted_tokens[::-1]},
    "a mask inverted": lambda read: {"mask": ~read.mask},
    "another head's weights": lambda read: {"weights": read.weights[:, ::-1]},
    "rows exchanged": lambda read: {"weights": read.weights[::-1]},
    "hidden weight lost": lambda read: {"hidden": read.hidden + 0.1},
    "other scores": lambda read: {"scores": None if read.scores is None else read.scores + 1},
    "another head's name": lambda read: {"head": 2},
    "a span moved": lambda read: {"columns": (read.columns[1], *read.columns[1:])},
}


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize("reading", [Reading(), WORDS, Reading(True, True, True)], ids=str)
def test_what_a_figure_receives_is_compared_with_the_map(reading: Reading, forged: str) -> None:
    whole = view("cross", random_tokens(3), 3, random_tokens(4, 20))
    read = read_view(whole, reading)
    assert read.audit.passed
    other = replace(read, **FORGED[forged](read))
    if forged == "other scores" and read.scores is None:
        return
    assert not other.audit.passed
    assert {check.name for check in other.audit.checks if not check.passed} <= {
        "arrays drawn",
        "labels",
    }


@pytest.mark.parametrize("forged", ["merge_words", "read_tokens", "read_map"])
def test_a_mistake_in_reading_itself_is_seen(forged: str, monkeypatch: pytest.MonkeyPatch) -> None:
    correct = getattr(reading_module, forged)
    turned: dict[str, Callable[..., Any]] = {
        "merge_words": lambda *given: correct(*given)[..., ::-1],
        "read_tokens": lambda *given: correct(*given)[::-1],
        "read_map": lambda *given: (correct(*given)[0] * 0.9, *correct(*given)[1:]),
    }
    monkeypatch.setattr(reading_module, forged, turned[forged])
    for reading in (Reading(), WORDS):
        assert not read_view(view("decoder", random_tokens(5)), reading).audit.passed


TYPED = ("▁<", "/", "s", ">", "</s>")


@pytest.mark.parametrize(
    ("kind", "tokens", "reading", "rows"),
    [
        ("encoder", ("▁Mäu", "se", "▁da", "</s>"), WORDS, ("▁Mäuse", "▁da", "</s>")),
        ("encoder", ("▁the", "▁cat", ".", "</s>"), Reading(False, True, True), ("▁the", "▁cat")),
        (
            "encoder",
            ("▁...", "</s>"),
            Reading(True, True, True),
            ("▁...", "</s>"),
        ),  # something is left
        ("encoder", TYPED, Reading(True, True), ("▁</s>",)),  # a typed mark is no special token
        ("encoder", ("▁pt", "_", "BR", "</s>"), Reading(True, True), ("▁pt_BR",)),
        ("cross", ("▁Mäu", "se", "</s>"), Reading(True, rows="predicted"), ("▁Mäuse", "</s>")),
        ("cross", ("▁Mäu", "se", "</s>"), WORDS, ("▁Mäuse", "</s>")),
        ("cross", ("▁Mäu", "se", "</s>"), Reading(True, rows="read"), ("<s>", "▁Mäuse")),
        ("decoder", ("▁Mäu", "se", "</s>"), WORDS, ("<s>", "▁Mäuse")),
    ],
)
def test_rows_are_named_by_the_words_that_are_read_or_predicted(
    kind, tokens, reading, rows
) -> None:
    read = read_view(view(kind, tokens), reading)
    assert (read.predicted_tokens if read.named == "predicted" else read.query_tokens) == rows


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("reading", [Reading(), WORDS, Reading(True, True, True)], ids=str)
def test_a_window_never_cuts_a_word_and_holds_its_position(reading: Reading, seed: int) -> None:
    tokens = random_tokens(seed, 200)
    starts = {group.start for group in reading_groups(tokens)} | {len(tokens)}
    for position in {*range(0, len(tokens), 7), len(tokens) - 1}:
        first, last = reading_window(tokens, reading, position, 64)
        assert len(read_view(view("encoder", tokens[first:last]), reading).columns) <= 64
        assert first <= position < last or reading != Reading()
        assert not reading.words or {first, last} <= starts


@pytest.mark.parametrize(("position", "first"), [(3, 0), (4, 2), (7, 2), (8, 6), (39, 32)])
def test_a_window_moves_by_half_of_its_size(position: int, first: int) -> None:
    assert reading_window(("▁a",) * 40, Reading(), position, 8) == (first, first + 8)


# --- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "texts"),
    [
        (("▁Ha", "us", ",", "▁\"", "ja", "\"", "!"), ["Haus", ",", '"', "ja", '"', "!"]),
        (("▁don", "'", "t", "▁3", ".", "5", "."), ["don't", "3.5", "."]),
        (("▁我", "喜欢", "猫", "。"), ["我", "喜欢", "猫", "。"]),
        (("▁猫", "が", "▁Tokyo", "と"), ["猫", "が", "Tokyo", "と"]),
        (("▁שלו", "ם", "▁עו", "לם", "."), ["שלום", "עולם", "."]),
        (("▁مر", "حبا", "▁يا", "،", "▁عالم"), ["مرحبا", "يا", "،", "عالم"]),
        (("▁고양", "이는"), ["고양이는"]),
        (("▁", "<0xE7>", "<0x8C>", "<0xAB>", "が"), ["猫", "が"]),
        (("▁नम", "स्", "ते"), ["नमस्ते"]),
        (("▁สวัส", "ดี"), ["สวัส", "ดี"]),
        (("▁👩", "\u200d", "👧", "▁👍", "🏽"), ["👩\u200d👧", "👍🏽"]),
        (("▁?", "!", "▁"), ["?", "!", "◦"]),
    ],
    ids=["quotes", "inner marks", "Chinese", "Japanese", "Hebrew", "Arabic", "Korean", "bytes", "Hindi",
         "Thai", "emoji", "marks only"],
)  # fmt: skip
def test_words_of_many_scripts(pieces: tuple[str, ...], texts: list[str]) -> None:
    groups = reading_groups(pieces)
    assert [group.text for group in groups] == texts
    assert [index for group in groups for index in group.indices] == list(range(len(pieces)))


def test_marks_are_punctuation_emoji_are_not_and_a_word_is_found_across_its_pieces_only_as_a_whole() -> (
    None
):
    assert [each for each in ("…", "«", "😀", "ी", "a.", "", "◦", "+") if is_punctuation(each)] == [
        "…",
        "«",
    ]
    pieces = ("▁Die", "▁Mäu", "se", ",", "▁die", "</s>")
    found = [find_word(pieces, word) for word in ("Mäuse", "die", "Mäu", "Katze")]
    assert found == [(1, 2), (4, 4), None, None]


@pytest.mark.parametrize(
    ("piece", "name"),
    [
        ("deu_Latn", "German"),
        ("__de__", "German"),
        ("<2de>", "German"),
        ("zho_Hant", "Chinese (traditional)"),
        ("ace_Arab", "Acehnese (Arabic script)"),
        ("xx", "xx"),
    ],
)
def test_a_piece_of_a_language_has_its_name(piece: str, name: str) -> None:
    assert languages.language_name(piece) == name


def test_the_languages_of_a_card_choose_the_sample(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("---\nlanguage: [de]\n---\n")
    models = [MODEL.parent / "en-pt", MODEL, tmp_path]
    words = [languages.languages_in_words(read_header(model).language) for model in models]
    assert words == ["English → Portuguese", "English → German", ""]
    used = [languages.sample_of(each).alignments for each in (*models, None)]
    assert used == ["alignments-en-pt.tsv", *["alignments.tsv"] * 3]


# --- the telling step and glosses ----------------------------------------------------------------

SOURCE = marked(("▁Yesterday", "▁I", "▁bought", "▁a", "▁book", ".", "</s>"))
TARGET = marked(("▁Gestern", "▁habe", "▁ich", "▁ein", "▁Buch", "▁ge", "kauft", ".", "</s>"))
PARTNERS = (0, 2, 1, 3, 4, 2, 2, 5, 6)
"""The source piece that each row attends to."""


def attention(partners: tuple[int, ...] = PARTNERS, share: float = 0.9) -> np.ndarray:
    """Weights with a share of each row on its partner, and the rest spread evenly."""
    weights = np.full((len(partners), len(SOURCE)), (1 - share) / (len(SOURCE) - 1), np.float32)
    weights[range(len(partners)), partners] = share
    return weights


def test_the_most_telling_step_writes_a_content_word_far_from_the_diagonal_that_both_aligners_link():
    verb = TARGET.index("▁ge")
    elsewhere = attention((*PARTNERS[:5], 3, 3, *PARTNERS[7:]))
    assert telling_step(attention(), SOURCE, TARGET) == verb
    assert telling_step(attention(), SOURCE, TARGET, attention()) == verb
    found = telling_step(attention(), SOURCE, TARGET, elsewhere)
    assert found == telling_step(elsewhere, SOURCE, TARGET, attention()) != verb
    unclear = attention()
    unclear[5:7] = 1 / len(SOURCE)
    assert telling_step(unclear, SOURCE, TARGET) in {0, 4}


HALF = ((0.5, 0.5), (0.5, 0.5))
DOG = ("▁dog", "</s>")


@pytest.mark.parametrize(
    ("weights", "source", "target", "step"),
    [
        (
            ((0.4, 0.6), (1, 0), (1, 0)),
            DOG,
            ("▁Hund", ".", "</s>"),
            0,
        ),  # however much the others attend
        (((0.4, 0.6), (1, 0), (1, 0)), DOG, (".", "▁Hund", "</s>"), 1),
        (((0.4, 0.6), (1, 0), (1, 0)), DOG, (".", "▁die", "</s>"), 1),
        (HALF, ("▁!", "</s>"), ("▁!", "</s>"), 0),
        (HALF, ("▁!", "</s>"), ("<unk>", "▁…"), 1),
        (HALF[:1], ("▁!", "</s>"), ("</s>",), 0),
        (np.zeros((0, 2)), ("▁!", "</s>"), (), 0),
    ],
)
def test_a_content_word_opens_before_a_function_word_a_mark_and_a_special_token(
    weights, source, target, step
):
    assert telling_step(np.array(weights, np.float32), marked(source), marked(target)) == step


def test_each_word_is_glossed_by_its_partner_unless_it_rests_on_the_end_or_has_a_stronger_rival():
    every = {0: "Yesterday", 1: "bought", 2: "I", 3: "a", 4: "book", 5: "bought"}
    assert glosses(attention(), SOURCE, TARGET) == every
    resting = attention((0, 6, *PARTNERS[2:]))
    assert glosses(resting, SOURCE, TARGET) == {
        place: word for place, word in every.items() if place != 1
    }
    rivals = attention((4, *PARTNERS[1:]))
    rivals[0, 4] = 0.8
    assert glosses(rivals, SOURCE, TARGET) == {
        place: word for place, word in every.items() if place != 0
    }


# --- claims --------------------------------------------------------------------------------------


def test_the_head_that_follows_a_word_shows_it_and_no_other_nor_without_the_words_or_the_weight(
    solved,
):
    case = CASES[solved.name]
    run = solved.translate(case.sentence)
    target = case.translation.split()[1]
    for head in (0, 1):
        key = case.keys("cross", head)[1]
        found = heads_that_show(run, target, case.source_tokens[key].removeprefix("▁"), 0.5)
        assert [*found] == [(0, other) for other in (0, 1) if case.keys("cross", other)[1] == key]
        assert min(found.values()) > 0.98
    for words in (("Haus", "one", 0), ("eins", "house", 0), ("eins", "one", 1.1)):
        assert heads_that_show(run, *words) == {}


def test_claims_share_a_head_wherever_one_shows_them():
    a = {(0, 1): 0.9}
    b = {(2, 3): 0.7}
    c = {(1, 1): 0.8}
    assert shared_heads([a | b, b, {}, c]) == [(2, 3), (2, 3), None, (1, 1)]
    assert shared_heads([a | b, {}]) == [(0, 1), None], "of those that show as many, the strongest"
    assert shared_heads([]) == []


@pytest.mark.parametrize(("most", "weight"), [(1, 0.8), (2, 0.8), (0, None), (3, None)])
def test_any_piece_of_the_source_word_may_have_the_largest_weight(most: int, weight: float | None):
    weights = np.full((1, 1, 4), 0.1)
    weights[0, 0, most] = 0.7
    run = SimpleNamespace(
        target_tokens=("▁um",),
        source_tokens=("▁a", "▁wood", "pecker", "</s>"),
        config=SimpleNamespace(sites={AttentionKind.CROSS: SimpleNamespace(n_layers=1)}),
        attention=SimpleNamespace(weights=lambda kind, layer: weights),
    )
    found = heads_that_show(run, "um", "woodpecker", 0.5)  # type: ignore[arg-type]
    assert [*found.values()] == [pytest.approx(weight)] * (weight is not None)
