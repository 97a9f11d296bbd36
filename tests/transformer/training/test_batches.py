from __future__ import annotations

from array import array
from collections import Counter
from itertools import islice

import pytest
import torch
from corpus import number_pairs

from transformer.text.pairs import SentencePair
from transformer.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer
from transformer.training.data import (
    EncodedPairs,
    encode_pairs,
    epoch_order,
    group_by_length,
    make_batch,
    rounded,
)


def random_lengths(count: int, seed: int = 0) -> EncodedPairs:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 20, (count, 2), generator=generator).tolist()
    return EncodedPairs([array("i", [4] * s) for s, _ in lengths], [array("i", [5] * t) for _, t in lengths])


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
    whole = list(islice(data.batches(100, 1, 0, 1), skip + 4))
    rest = list(islice(data.batches(100, 1, skip, 1), 4))
    for expected, found in zip(whole[skip:], rest, strict=True):
        assert torch.equal(expected.src_ids, found.src_ids)
        assert torch.equal(expected.tgt_ids, found.tgt_ids)


def test_evaluation_sees_every_pair_once() -> None:
    batches = list(random_lengths(57).in_order(100))
    assert sum(len(batch.src_ids) for batch in batches) == 57


def test_long_pairs_are_left_out_and_the_longest_is_known(tokenizer: Tokenizer) -> None:
    pairs = [SentencePair(*pair) for pair in number_pairs(50)]
    data = encode_pairs(pairs, tokenizer)
    assert data.longest == 1 + max(map(len, [*data.source, *data.target]))
    shorter = data.up_to(data.longest - 1)
    assert 0 < len(shorter) < len(data)
    assert shorter.longest < data.longest


def test_an_epoch_has_each_pair_as_often_as_its_weight_says(tokenizer: Tokenizer) -> None:
    pairs = [SentencePair(*pair) for pair in number_pairs(200)]
    data = encode_pairs(pairs, tokenizer, [2.0] * 50 + [0.5] * 100 + [1.0] * 50).up_to(1000)

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


def test_few_shapes_hold_every_pair_once_with_rows_that_predict_nothing() -> None:
    data = random_lengths(3000)
    orders = epoch_order(data, 400, seed=3, epoch=0, few_shapes=True)
    assert sorted(row for batch in orders for row in batch) == list(range(3000))
    batches = [make_batch(data, rows, 400) for rows in orders]
    shapes = Counter(batch.shape for batch in batches)
    assert len(shapes) < len({make_batch(data, rows).shape for rows in orders}) / 2
    assert sum(count for count in shapes.values() if count > 1) > 0.8 * len(batches)
    for rows, batch in zip(orders, batches, strict=True):
        assert max(batch.src_ids.numel(), batch.tgt_ids.numel()) <= 400
        assert (
            batch.tokens == int((batch.tgt_ids != PAD_ID).sum()) == sum(len(data.target[i]) + 1 for i in rows)
        )
        assert batch.src_padding is not None
        assert batch.src_padding.any(1).all()
        assert torch.equal(batch.src_padding[: len(rows)], batch.src_ids[: len(rows)] != PAD_ID)
        assert (batch.tgt_ids[len(rows) :] == PAD_ID).all()


@pytest.mark.parametrize(
    ("length", "expected"),
    [(1, 2), (2, 2), (8, 8), (9, 10), (16, 16), (17, 20), (33, 40), (65, 80)],
)
def test_lengths_are_rounded_up_to_one_of_four_steps(length: int, expected: int) -> None:
    assert rounded(length) == expected


def test_ids_of_padding_and_end_inside_a_text_are_tokens() -> None:
    data = EncodedPairs(
        [array("i", [PAD_ID, 7, EOS_ID]), array("i", [8])], [array("i", [EOS_ID, 9]), array("i")]
    )
    batch = make_batch(data, [0, 1])
    assert batch.src_padding is not None
    assert batch.src_padding.tolist() == [[True] * 4, [True, True, False, False]]
    assert batch.tgt_input_ids.tolist() == [[BOS_ID, EOS_ID, 9], [BOS_ID, PAD_ID, PAD_ID]]
    assert batch.tgt_ids.tolist() == [[EOS_ID, 9, EOS_ID], [EOS_ID, PAD_ID, PAD_ID]]
