"""Toy tasks: every pair is right, none is trained on and measured with, and the same seed gives the same."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pytest

from transformer.text.tokenizer import Tokenizer
from transformer.training.toys import HELD_OUT, LENGTHS, MONTHS, SHORTEST, TOYS, toy_data

ORDERS: dict[str, Callable[[list[str]], list[str]]] = {
    "copy": list,
    "reverse": lambda letters: list(reversed(letters)),
    "sort": sorted,
}
FORMS = ("%d %B %Y", "%B %d, %Y", "%d.%m.%Y")


@pytest.mark.parametrize("name", ORDERS)
def test_every_target_is_its_source_in_the_order_of_the_task(name: str) -> None:
    data = toy_data(name, 6)
    for pair in (*data.train, *data.valid):
        letters = pair.source.split()
        assert pair.target.split() == ORDERS[name](letters)
        assert SHORTEST <= len(letters) <= 6


def parsed(text: str) -> datetime.date:
    for form in FORMS:
        try:
            return datetime.datetime.strptime(text, form).date()
        except ValueError:
            continue
    raise AssertionError(text)


def test_every_date_is_rewritten_as_the_same_day() -> None:
    data = toy_data("dates")
    assert all(parsed(pair.source).isoformat() == pair.target for pair in (*data.train, *data.valid))


@pytest.mark.parametrize("name", TOYS)
def test_no_source_occurs_twice_and_some_are_held_out(name: str) -> None:
    data = toy_data(name, LENGTHS[0])
    sources = [pair.source for pair in (*data.train, *data.valid)]
    assert len(set(sources)) == len(sources)
    assert len(data.valid) == HELD_OUT
    assert len(data.train) > HELD_OUT


def test_the_same_seed_gives_the_same_pairs_and_another_one_others() -> None:
    assert toy_data("sort") == toy_data("sort")
    assert toy_data("sort", seed=2).train != toy_data("sort").train


def vocabulary(name: str) -> Tokenizer:
    data = toy_data(name)
    texts = (text for pair in data.train for text in (pair.source, pair.target))
    return Tokenizer.train((*data.words, *texts), 400, at_most=True)


@pytest.mark.parametrize("name", ORDERS)
def test_every_letter_is_one_piece(name: str) -> None:
    tokenizer = vocabulary(name)
    assert tokenizer.pieces(tokenizer.encode("g c a h e")) == ("▁g", "▁c", "▁a", "▁h", "▁e")


def test_every_month_is_one_piece_and_every_digit_too() -> None:
    tokenizer = vocabulary("dates")
    for month in MONTHS:
        pieces = [piece.strip("▁") for piece in tokenizer.pieces(tokenizer.encode(f"26 {month} 1982"))]
        assert [piece for piece in pieces if piece] == ["2", "6", month, "1", "9", "8", "2"]


@pytest.mark.parametrize(
    ("name", "length", "message"),
    [
        ("shuffle", 5, "not a toy task; choose copy"),
        ("copy", 2, "choose 3 to 12"),
        ("copy", 13, "choose 3 to"),
    ],
)
def test_a_task_that_does_not_exist_is_refused(name: str, length: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        toy_data(name, length)
