from __future__ import annotations

import gzip
from array import array
from collections import deque
from itertools import islice
from pathlib import Path

import pytest
import torch
from corpus import number_pairs, write_pairs

from transformer.text.pairs import Bounds, DataError, SentencePair, read_lines, read_pairs
from transformer.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, Tokenizer
from transformer.training.augment import augmented, join_pairs, plain, plain_pairs, swapped_pairs, typed_pairs
from transformer.training.batches import (
    EncodedPairs,
    encode_pairs,
    epoch_order,
    evaluation_batches,
    group_by_length,
    make_batch,
    training_batches,
)


def random_lengths(count: int, seed: int = 0) -> EncodedPairs:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 20, (count, 2), generator=generator).tolist()
    return EncodedPairs([array("i", [4] * s) for s, _ in lengths], [array("i", [5] * t) for _, t in lengths])


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.tsv.gz"])
def test_plain_and_gzipped_files_read_alike(tmp_path: Path, name: str) -> None:
    path = write_pairs(tmp_path / name, [("a b", "c"), ("Käse 😀", "x y")])
    assert read_pairs(path) == [SentencePair("a b", "c"), SentencePair("Käse 😀", "x y")]


def test_windows_line_ends_and_a_byte_order_mark_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"\xef\xbb\xbfa\tb\r\nc\td\r\n")
    assert read_pairs(tmp_path / "a.tsv") == [SentencePair("a", "b"), SentencePair("c", "d")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\nonly one\n", r"a\.tsv:2: .*found 1 column\."),
        (b"a\tb\tc\n", r"a\.tsv:1: .*found 3 columns\."),
        (b"a\tb\n\n", r"a\.tsv:2: "),
        (b"a\tb\n \tb\n", r"a\.tsv:2: the source is empty"),
        (b"a\t\n", r"a\.tsv:1: the target is empty"),
        (b"a\tb\na\t\xff\n", r"a\.tsv:2: .*not UTF-8"),
        (b"", r"a\.tsv: the file is empty"),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.tsv").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_pairs(tmp_path / "a.tsv")


@pytest.mark.parametrize(
    "content", [b"no gzip", gzip.compress(b"a\tb\n" * 1000, mtime=0)[:30]], ids=["no gzip", "cut"]
)
def test_a_damaged_gzip_file_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tsv.gz").write_bytes(content)
    with pytest.raises(DataError, match="gzip file is damaged"):
        read_pairs(tmp_path / "a.tsv.gz")


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_pairs(tmp_path / "none.tsv")


def test_a_batch_holds_what_is_read_and_what_is_predicted() -> None:
    data = EncodedPairs([array("i", [10, 11]), array("i", [12])], [array("i", [20]), array("i", [21, 22])])
    batch = make_batch(data, [0, 1])
    assert batch.src_ids.tolist() == [[10, 11, EOS_ID], [12, EOS_ID, PAD_ID]]
    assert batch.tgt_input_ids.tolist() == [[BOS_ID, 20, PAD_ID], [BOS_ID, 21, 22]]
    assert batch.tgt_ids.tolist() == [[20, EOS_ID, PAD_ID], [21, 22, EOS_ID]]


def test_every_pair_is_in_one_batch_of_an_epoch() -> None:
    data = random_lengths(500)
    order = epoch_order(data, 200, seed=3, epoch=1)
    assert sorted(row for batch in order for row in batch) == list(range(500))


def test_batches_keep_to_the_limit_and_little_of_them_is_padding() -> None:
    data = random_lengths(5000)
    batches = [make_batch(data, rows) for rows in epoch_order(data, 400, seed=3, epoch=0)]
    assert max(max(batch.src_ids.numel(), batch.tgt_ids.numel()) for batch in batches) <= 400
    padding = sum(int((batch.src_ids == PAD_ID).sum()) for batch in batches)
    assert padding < 0.05 * sum(batch.src_ids.numel() for batch in batches)


def test_a_pair_over_the_limit_is_a_batch_of_its_own() -> None:
    data = EncodedPairs([array("i", [4] * 30), array("i", [4])], [array("i", [4]), array("i", [4])])
    assert group_by_length(data, range(2), 10) == [[1], [0]]


def test_the_order_depends_on_seed_and_epoch_only() -> None:
    data = random_lengths(300)
    assert epoch_order(data, 100, 1, 0) == epoch_order(data, 100, 1, 0)
    assert epoch_order(data, 100, 1, 0) != epoch_order(data, 100, 1, 1)
    assert epoch_order(data, 100, 1, 0) != epoch_order(data, 100, 2, 0)


@pytest.mark.parametrize("skip", [0, 3, 40, 100])
def test_skipping_batches_continues_the_same_stream(skip: int) -> None:
    data = random_lengths(100)
    whole = list(islice(training_batches(data, 100, 1), skip + 4))
    rest = list(islice(training_batches(data, 100, 1, skip=skip), 4))
    for expected, found in zip(whole[skip:], rest, strict=True):
        assert torch.equal(expected.src_ids, found.src_ids)
        assert torch.equal(expected.tgt_ids, found.tgt_ids)


def test_evaluation_sees_every_pair_once() -> None:
    batches = list(evaluation_batches(random_lengths(57), 100))
    assert sum(len(batch.src_ids) for batch in batches) == 57


def test_long_pairs_are_left_out_and_the_longest_is_known(tokenizer: Tokenizer) -> None:
    pairs = [SentencePair(*pair) for pair in number_pairs(50)]
    data = encode_pairs(pairs, tokenizer)
    assert data.longest == 1 + max(map(len, [*data.source, *data.target]))
    shorter = data.within(data.longest - 1)
    assert 0 < len(shorter) < len(data)
    assert shorter.longest < data.longest


def test_joined_pairs_stay_translations_of_each_other() -> None:
    joined = join_pairs([SentencePair("a", "A"), SentencePair("b", "B")], 1.0, seed=1)
    assert len(joined) == 2
    assert all(pair.source.upper() == pair.target and 3 <= len(pair.source) <= 7 for pair in joined)


def test_plain_text_is_lower_case_with_spaced_punctuation() -> None:
    assert plain("Hello, you're Tom!") == "hello , you ' re tom !"
    assert plain_pairs([SentencePair("Oh.", "Ach.")], 1.0, seed=1) == [SentencePair("oh .", "ach .")]


def test_typed_pairs_change_the_source_only() -> None:
    assert typed_pairs([SentencePair("Oh no!", "Ach nein!")], 1.0, 1) == [SentencePair("oh no", "Ach nein!")]
    assert typed_pairs([SentencePair("?!", "Was?")], 1.0, 1) == [SentencePair("?!", "Was?")]


def test_extra_pairs_follow_the_given_ones_in_their_shares() -> None:
    pairs = [SentencePair(f"A{n}.", f"B{n}.") for n in range(100)]
    made = augmented(pairs, {"join": 0.1, "plain": 0.2, "typed": 0.1}, seed=1)
    assert made[:100] == pairs
    assert len(made) == 110 + 22 + 11
    assert augmented(pairs, {}, seed=1) == pairs


def test_names_and_numbers_are_swapped_on_both_sides_alike() -> None:
    pairs = [
        SentencePair("Tom was born in 1992.", "Tom wurde 1992 geboren."),
        SentencePair("Mary likes Boston.", "Maria mag Boston."),
        SentencePair("Tom's dog is old.", "Toms Hund ist alt."),
        SentencePair("In Rome he saw a tom.", "In Rom sah er Tom."),
    ]
    made = swapped_pairs(pairs, 1.0, seed=3)
    assert 1 <= len(made) <= 2
    for pair in made:
        shared = {word for word in pair.source.rstrip(".").split() if word in pair.target.rstrip(".").split()}
        assert shared
        assert "1992" not in pair.source + pair.target
        assert "Maria" not in pair.source
    assert swapped_pairs(pairs, 1.0, seed=3) == made
    names = swapped_pairs([SentencePair(f"Name{n} x", f"Name{n} y") for n in "abcdef"], 1.0, seed=1)
    assert all(pair.source.split()[0] == pair.target.split()[0] for pair in names)
    assert {pair.source for pair in names} != {f"Name{n} x" for n in "abcdef"}


def test_an_epoch_has_each_pair_as_often_as_its_weight_says(tokenizer: Tokenizer) -> None:
    pairs = [SentencePair(*pair) for pair in number_pairs(200)]
    data = encode_pairs(pairs, tokenizer, [2.0] * 50 + [0.5] * 100 + [1.0] * 50).within(1000)

    def epoch(number: int) -> list[int]:
        return sorted(row for batch in epoch_order(data, 120, 1, number) for row in batch)

    first, second = epoch(0), epoch(1)
    for rows in (first, second):
        assert [row for row in rows if row < 50] == [row for row in range(50) for _ in range(2)]
        assert [row for row in rows if row >= 150] == list(range(150, 200))
        halves = [row for row in rows if 50 <= row < 150]
        assert 30 < len(halves) == len(set(halves)) < 70
    assert first != second
    assert epoch(0) == first


@pytest.mark.parametrize(
    ("content", "most", "message"),
    [
        (b"a\tb\n" * 1_500_000, 10**6, "unpacks to more than 1 MB"),
        (b"a" * 50_000_000, 10**6, r"pairs\.tsv\.gz:1: this line has more than 1 kB"),
        (b"a\tb\n" * 20_000, 10_000, "more than 10,000 lines"),
    ],
    ids=["total", "line", "lines"],
)
def test_a_packed_file_is_read_up_to_its_bounds_only(
    tmp_path: Path, content: bytes, most: int, message: str
) -> None:
    path = tmp_path / "pairs.tsv.gz"
    path.write_bytes(gzip.compress(content))
    lines = read_lines(path, Bounds(total=2**20, line=2**10, lines=most))
    with pytest.raises(DataError, match=message):
        deque(lines, maxlen=0)


def test_a_file_at_its_bounds_is_read(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_bytes(b"a\tb\n" * 3)
    assert len(list(read_lines(tmp_path / "pairs.tsv", Bounds(total=12, line=4, lines=3)))) == 3
