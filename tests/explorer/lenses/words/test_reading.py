from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from closed_form import CASES, KNOWN

from explorer.lenses.words.groups import find_word, reading_groups
from explorer.lenses.words.reading import Reading, read_view, reading_window
from transformer.config import AttentionKind
from transformer.text.words import is_punctuation
from transformer.translator import Translator
from transformer.view import AuditReport, HeadView, Window

WORDS = Reading(words=True)
PARTS = ("▁die", "▁Mäu", "se", ",", "▁(", "jag", "te", ")", ".", "▁猫", "が", "▁", "<0xC3>", "<0xA9>", "</s>")


def view(
    kind: str,
    queries: tuple[str, ...],
    keys: tuple[str, ...],
    predicted: tuple[str, ...] | None = None,
    seed: int = 0,
) -> HeadView:
    """A head with random weights; causal in the decoder."""
    shape = len(queries), len(keys)
    mask = np.tri(*shape, dtype=bool) if kind == "decoder" else np.ones(shape, dtype=bool)
    weights = np.random.default_rng(seed).random(shape, dtype=np.float32) * mask
    weights /= weights.sum(1, keepdims=True)
    vectors = np.zeros((max(shape), 4), np.float32)
    return HeadView(
        kind=AttentionKind(kind), layer=0, head=1, model="m", norm="pre", query_tokens=queries,
        predicted_tokens=predicted, key_tokens=keys, window=Window(0, shape[0], 0, shape[1]),
        scores=np.log(np.where(mask, weights, 1)), mask=mask, weights=weights, query=vectors, key=vectors,
        value=vectors, output=vectors, report=AuditReport(()),
    )  # fmt: skip


def decoder_view(tokens: tuple[str, ...], seed: int = 0) -> HeadView:
    reads = ("<s>", *tokens[:-1])
    return view("decoder", reads, reads, tokens, seed)


def random_tokens(seed: int, length: int = 40) -> tuple[str, ...]:
    draw = np.random.default_rng(seed)
    return (*(PARTS[i] for i in draw.integers(0, len(PARTS) - 1, length)), "</s>")


def test_sub_words_are_one_row_and_one_column() -> None:
    read = read_view(view("encoder", ("▁Mäu", "se", "▁da", "</s>"), ("▁Mäu", "se", "▁da", "</s>")), WORDS)
    assert read.key_tokens == ("▁Mäuse", "▁da", "</s>")
    assert read.weights.shape == (3, 3)
    assert read.scores is None
    assert [(group.start, group.stop) for group in read.rows] == [(0, 2), (2, 3), (3, 4)]


def test_weights_are_summed_over_keys_and_averaged_over_queries() -> None:
    whole = view("cross", ("<s>", "▁a", "b"), ("▁x", "y", "</s>"), ("▁a", "b", "</s>"))
    read = read_view(whole, WORDS)
    expected = (whole.weights[0, :2].sum() + whole.weights[1, :2].sum()) / 2
    assert read.weights[0, 0] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_rows_keep_their_sum_and_order_whatever_the_tokens(kind: str, seed: int) -> None:
    tokens = random_tokens(seed)
    whole = {
        "encoder": lambda: view("encoder", tokens, tokens, None, seed),
        "decoder": lambda: decoder_view(tokens, seed),
        "cross": lambda: view("cross", ("<s>", *tokens[:-1]), random_tokens(seed + 99), tokens, seed),
    }[kind]()
    for reading in (WORDS, Reading(True, True, True), Reading(False, True, True), Reading(True, rows="read")):
        read = read_view(whole, reading)
        assert np.allclose(read.weights.sum(1) + read.hidden, 1, atol=1e-5)
        for axis in (read.rows, read.columns):
            starts = [group.start for group in axis]
            assert starts == sorted(starts)
            assert all(one.stop <= other.start for one, other in pairwise(axis))
        if not (reading.hide_special or reading.hide_punctuation):
            assert not read.hidden.any()
            assert [i for group in read.columns for i in group.indices] == list(range(len(whole.key_tokens)))


@pytest.mark.parametrize("seed", range(10))
def test_a_merged_cell_is_visible_if_any_pair_of_its_pieces_is(seed: int) -> None:
    whole = decoder_view(random_tokens(seed), seed)
    read = read_view(whole, WORDS)
    for i, row in enumerate(read.rows):
        for j, column in enumerate(read.columns):
            assert read.mask[i, j] == whole.mask[row.start : row.stop, column.start : column.stop].any()
    assert not read.weights[~read.mask].any()


@pytest.mark.parametrize("reading", [Reading(), WORDS], ids=["pieces", "words"])
def test_pieces_that_are_whole_words_stay_as_they_are(reading: Reading) -> None:
    tokens = ("▁the", "▁cat", "▁saw", "▁the", "</s>")
    whole = view("encoder", tokens, tokens)
    read = read_view(whole, reading)
    assert read.key_tokens == tokens == read.query_tokens
    assert np.array_equal(read.weights, whole.weights)
    assert np.array_equal(read.mask, whole.mask)


def test_only_a_plain_reading_is_the_models_own() -> None:
    tokens = ("▁the", "▁cat", ".", "</s>")
    plain, hiding = (
        read_view(view("encoder", tokens, tokens), each) for each in (Reading(), Reading(False, True))
    )
    assert not plain.derived
    assert plain.scores is not None
    assert hiding.derived
    assert hiding.scores is not None


def test_hidden_tokens_leave_their_weight_named_and_nothing_renormalised() -> None:
    tokens = ("▁the", "▁cat", ".", "</s>")
    whole = view("encoder", tokens, tokens)
    read = read_view(whole, Reading(False, True, True))
    assert read.key_tokens == ("▁the", "▁cat")
    assert np.array_equal(read.weights, whole.weights[:2, :2])
    assert np.allclose(read.hidden, whole.weights[:2, 2:].sum(1))


def test_what_would_leave_nothing_hides_nothing() -> None:
    tokens = ("▁...", "</s>")
    read = read_view(view("encoder", tokens, tokens), Reading(True, True, True))
    assert read.key_tokens == tokens
    assert not read.derived or read.hidden.sum() == 0


def test_a_typed_mark_does_not_pass_for_a_special_token() -> None:
    tokens = ("▁<", "/", "s", ">", "</s>")
    read = read_view(view("encoder", tokens, tokens), Reading(True, True))
    assert len(read.key_tokens) >= 1
    assert "</s>" not in read.key_tokens


@pytest.mark.parametrize(("rows", "first"), [("predicted", "▁Mäuse"), ("read", "<s>"), (None, "▁Mäuse")])
def test_cross_attention_rows_are_words_that_are_read_or_predicted(rows: str | None, first: str) -> None:
    whole = view("cross", ("<s>", "▁Mäu", "se"), ("▁mice", "</s>"), ("▁Mäu", "se", "</s>"))
    read = read_view(whole, Reading(True, rows=rows))  # type: ignore[arg-type]
    named = read.predicted_tokens if read.named == "predicted" else read.query_tokens
    assert named is not None
    assert named[0] == first
    assert len(read.rows) == 2


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


def test_emoji_and_vowel_signs_are_no_punctuation() -> None:
    assert is_punctuation("…")
    assert is_punctuation("«")
    assert not any(map(is_punctuation, ("😀", "ी", "a.", "", "◦", "+")))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "reading", [Reading(), WORDS, Reading(True, True, True)], ids=["plain", "words", "hiding"]
)
def test_a_window_never_cuts_a_word_and_holds_its_position(reading: Reading, seed: int) -> None:
    tokens = random_tokens(seed, 300)
    starts = {group.start for group in reading_groups(tokens)} | {len(tokens)}
    for position in {*range(0, len(tokens), 3), len(tokens) - 1}:
        first, last = reading_window(tokens, reading, position, 64)
        read = read_view(view("encoder", ("▁q",), tokens[first:last]), reading)
        assert len(read.columns) <= 64
        assert first <= position < last or reading.changes
        if reading.words:
            assert {first, last} <= starts


@pytest.mark.parametrize(("position", "first"), [(3, 0), (4, 2), (7, 2), (8, 6), (39, 32)])
def test_a_window_moves_by_half_of_its_size(position: int, first: int) -> None:
    assert reading_window(("▁a",) * 40, Reading(), position, 8) == (first, first + 8)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_known_cells_stay_known_in_words(solved: Translator, kind: str) -> None:
    case = CASES[solved.name]
    whole = solved.translate(case.sentence).head(kind, 0, 1)
    read = read_view(whole, WORDS)
    assert len(read.rows) == len(whole.query_tokens)
    for row, key in enumerate(case.keys(kind, 1)):
        assert read.weights[row, key] > KNOWN


def test_a_word_is_found_across_its_pieces_only_as_a_whole():
    pieces = ("▁Die", "▁Mäu", "se", ",", "▁die", "</s>")
    assert find_word(pieces, "Mäuse") == (1, 2)
    assert find_word(pieces, "die") == (4, 4)
    assert find_word(pieces, "Mäu") is None
    assert find_word(pieces, "Katze") is None
