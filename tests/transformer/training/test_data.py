"""Pairs to train on: their batches, what is made of them besides, and the toy tasks."""

import datetime
from array import array
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import islice

import pytest
import torch
from corpus import number_pairs

from transformer.text.pairs import SentencePair
from transformer.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer
from transformer.training.augment import augmented
from transformer.training.data import (
    EncodedPairs,
    encode_pairs,
    epoch_order,
    group_by_length,
    make_batch,
    rounded,
)
from transformer.training.toys import HELD_OUT, LENGTHS, SHORTEST, TOYS, toy_data


def encoded(*pairs: tuple[list[int], list[int]]) -> EncodedPairs:
    return EncodedPairs([array("i", s) for s, _ in pairs], [array("i", t) for _, t in pairs])


def random_lengths(count: int) -> EncodedPairs:
    lengths = torch.randint(1, 20, (count, 2), generator=torch.Generator().manual_seed(0)).tolist()
    return encoded(*(([4] * s, [5] * t) for s, t in lengths))


def test_a_batch_holds_what_is_read_and_what_is_predicted():
    batch = make_batch(encoded(([10, 11], [20]), ([12], [21, 22])), [0, 1])
    assert batch.src_ids.tolist() == [[10, 11, EOS_ID], [12, EOS_ID, PAD_ID]]
    assert batch.tgt_input_ids.tolist() == [[BOS_ID, 20, PAD_ID], [BOS_ID, 21, 22]]
    assert batch.tgt_ids.tolist() == [[20, EOS_ID, PAD_ID], [21, 22, EOS_ID]]
    # ids of padding and end inside a text are tokens
    batch = make_batch(encoded(([PAD_ID, 7, EOS_ID], [EOS_ID, 9]), ([8], [])), [0, 1])
    assert batch.src_padding is not None
    assert batch.src_padding.tolist() == [[True] * 4, [True, True, False, False]]
    assert batch.tgt_input_ids.tolist() == [[BOS_ID, EOS_ID, 9], [BOS_ID, PAD_ID, PAD_ID]]
    assert batch.tgt_ids.tolist() == [[EOS_ID, 9, EOS_ID], [EOS_ID, PAD_ID, PAD_ID]]


def test_an_epoch_has_every_pair_once_within_the_limit_and_little_padding():
    data = random_lengths(2000)
    order = epoch_order(data, 400, seed=3, epoch=0)
    assert sorted(row for rows in order for row in rows) == [*range(2000)]
    batches = [make_batch(data, rows) for rows in order]
    assert max(max(batch.src_ids.numel(), batch.tgt_ids.numel()) for batch in batches) <= 400
    padding = sum(int((batch.src_ids == PAD_ID).sum()) for batch in batches)
    assert padding < 0.07 * sum(batch.src_ids.numel() for batch in batches)
    assert order not in (epoch_order(data, 400, 3, 1), epoch_order(data, 400, 2, 0))
    long = encoded(([4] * 30, [4]), ([4], [4]))
    assert group_by_length(long, range(2), 10) == [[1], [0]]
    assert sum(len(batch.src_ids) for batch in data.in_order(100)) == 2000


@pytest.mark.parametrize("skip", [3, 100])
def test_skipping_batches_continues_the_same_stream(skip: int):
    data = random_lengths(100)
    whole = list(islice(data.batches(100, 1, 0, 1), skip + 4))
    rest = list(islice(data.batches(100, 1, skip, 1), 4))
    for expected, batch in zip(whole[skip:], rest, strict=True):
        assert torch.equal(expected.src_ids, batch.src_ids)
        assert torch.equal(expected.tgt_ids, batch.tgt_ids)


def test_long_pairs_are_left_out_and_weights_say_how_often_a_pair_comes(tokenizer: Tokenizer):
    pairs = [SentencePair(*pair) for pair in number_pairs(200)]
    data = encode_pairs(pairs, tokenizer, [2.0] * 50 + [0.5] * 100 + [1.0] * 50)
    assert data.longest == 1 + max(map(len, [*data.source, *data.target]))
    shorter = data.up_to(data.longest - 1)
    assert 0 < len(shorter) < len(data)
    assert shorter.longest < data.longest
    epochs = [
        sorted(row for rows in epoch_order(data, 120, 1, n) for row in rows) for n in (0, 1, 0)
    ]
    for rows in epochs:
        assert [row for row in rows if row < 50] == [row for row in range(50) for _ in range(2)]
        assert [row for row in rows if row >= 150] == [*range(150, 200)]
        halves = [row for row in rows if 50 <= row < 150]
        assert 30 < len(halves) == len(set(halves)) < 70
    assert epochs[0] == epochs[2] != epochs[1]


def test_few_shapes_hold_every_pair_once_with_rows_that_predict_nothing():
    data = random_lengths(2000)
    orders = epoch_order(data, 400, seed=3, epoch=0, few_shapes=True)
    assert sorted(row for rows in orders for row in rows) == [*range(2000)]
    batches = [make_batch(data, rows, 400) for rows in orders]
    shapes = Counter(batch.shape for batch in batches)
    assert len(shapes) < len({make_batch(data, rows).shape for rows in orders}) / 2
    assert sum(count for count in shapes.values() if count > 1) > 0.8 * len(batches)
    for rows, batch in zip(orders, batches, strict=True):
        tokens = sum(len(data.target[i]) + 1 for i in rows)
        assert max(batch.src_ids.numel(), batch.tgt_ids.numel()) <= 400
        assert batch.tokens == int((batch.tgt_ids != PAD_ID).sum()) == tokens
        assert batch.src_padding is not None
        assert batch.src_padding.any(1).all()
        assert torch.equal(batch.src_padding[: len(rows)], batch.src_ids[: len(rows)] != PAD_ID)
        assert (batch.tgt_ids[len(rows) :] == PAD_ID).all()
    lengths = {1: 2, 2: 2, 8: 8, 9: 10, 16: 16, 17: 20, 33: 40, 65: 80}
    assert {length: rounded(length) for length in lengths} == lengths


# --- made besides --------------------------------------------------------------------------------


def extra(name: str, pairs: list[SentencePair], seed: int = 1) -> list[SentencePair]:
    """As many pairs of one maker as there are pairs."""
    return augmented(pairs, {name: 1.0}, seed)[len(pairs) :]


def test_joined_plain_and_typed_pairs_stay_translations_behind_the_others():
    joined = extra("join", [SentencePair("a", "A"), SentencePair("b", "B")])
    assert len(joined) == 2
    assert all(pair.source.upper() == pair.target and 3 <= len(pair.source) <= 7 for pair in joined)
    plain = extra("plain", [SentencePair("Hello, you're Tom!", "Ach.")])
    assert plain == [SentencePair("hello , you ' re tom !", "ach .")]
    assert extra("typed", [SentencePair("Oh no!", "Ach nein!")]) == [
        SentencePair("oh no", "Ach nein!")
    ]
    assert extra("typed", [SentencePair("?!", "Was?")]) == [SentencePair("?!", "Was?")]
    pairs = [SentencePair(f"A{n}.", f"B{n}.") for n in range(100)]
    more = augmented(pairs, {"join": 0.1, "plain": 0.2, "typed": 0.1}, seed=1)
    assert (more[:100], len(more)) == (pairs, 110 + 22 + 11)
    assert augmented(pairs, {}, seed=1) == pairs


def test_names_and_numbers_are_swapped_on_both_sides_alike():
    pairs = [
        SentencePair("Tom was born in 1992.", "Tom wurde 1992 geboren."),
        SentencePair("Mary likes Boston.", "Maria mag Boston."),
        SentencePair("Tom's dog is old.", "Toms Hund ist alt."),
        SentencePair("In Rome he saw a tom.", "In Rom sah er Tom."),
    ]
    swapped = extra("swap", pairs, seed=3)
    assert 1 <= len(swapped) <= 2
    for pair in swapped:
        assert {*pair.source.rstrip(".").split()} & {*pair.target.rstrip(".").split()}
        assert "1992" not in pair.source + pair.target
        assert "Maria" not in pair.source
    names = extra("swap", [SentencePair(f"Name{n} x", f"Name{n} y") for n in "abcdef"])
    assert all(pair.source.split()[0] == pair.target.split()[0] for pair in names)
    assert {pair.source for pair in names} != {f"Name{n} x" for n in "abcdef"}


# --- toys ----------------------------------------------------------------------------------------

ORDERS: dict[str, Callable[[list[str]], list[str]]] = {
    "copy": list,
    "reverse": lambda letters: [*reversed(letters)],
    "sort": sorted,
}


def parsed(text: str) -> str:
    for form in ("%d %B %Y", "%B %d, %Y", "%d.%m.%Y"):
        with suppress(ValueError):
            return datetime.datetime.strptime(text, form).date().isoformat()
    raise AssertionError(text)


@pytest.mark.parametrize("name", TOYS)
def test_every_pair_of_a_toy_is_right_and_none_occurs_twice(name: str):
    data = toy_data(name, LENGTHS[0]) if name == "dates" else toy_data(name, 6)
    pairs = [*data.train, *data.valid]
    for pair in pairs:
        if name in ORDERS:
            letters = pair.source.split()
            assert pair.target.split() == ORDERS[name](letters)
            assert SHORTEST <= len(letters) <= 6
        else:
            assert pair.target == parsed(pair.source)
    assert len({pair.source for pair in pairs}) == len(pairs)
    assert len(data.valid) == HELD_OUT < len(data.train)
    assert toy_data(name) == toy_data(name) != toy_data(name, seed=2)


def test_a_task_that_does_not_exist_is_refused():
    for name, length, words in (
        ("shuffle", 5, "choose copy"),
        ("copy", 2, "3 to 12"),
        ("copy", 13, "3 to"),
    ):
        with pytest.raises(ValueError, match=words):
            toy_data(name, length)
