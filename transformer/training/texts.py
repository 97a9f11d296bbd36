"""Texts for a language model, packed into rows; a mask keeps the texts of a row apart."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice

import torch
from torch import Tensor

from transformer.model.sites import Side
from transformer.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, Tokenizer
from transformer.training.data import pad

OPEN_ROWS = 16
"""Rows that are being filled at a time."""

Part = tuple[int, int, int]
"""A text by its index, and the part of it that stands in a row: from, up to."""


@dataclass(frozen=True)
class TextBatch:
    """Rows of texts, ready for a language model."""

    ids: Tensor  # (rows, length) ids that it reads
    texts: Tensor  # (rows, length) numbers of the texts of a row, from 0; padding has −1
    wanted: Tensor  # (rows, length) the id that follows each; padding has ``PAD_ID``

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self.ids, self.texts, self.wanted

    @property
    def read(self) -> tuple[Tensor, ...]:
        return self.ids, self.texts

    @property
    def rows(self) -> int:
        return len(self.ids)

    @property
    def lengths(self) -> Mapping[Side, int]:
        return {"decoder": self.ids.shape[1]}

    @property
    def predicted(self) -> int:
        return int((self.wanted != PAD_ID).sum())

    def to(self, device: torch.device) -> TextBatch:
        return TextBatch(*(each.to(device, non_blocking=True) for each in self.tensors))


@dataclass(frozen=True)
class PackedTexts:
    """Texts as ids, each from ``<s>`` to ``</s>``; a text longer than a row continues in another row."""

    texts: list[array[int]]  # ids of each text, with ``<s>`` and ``</s>``
    row: int  # positions of a row

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def longest(self) -> int:
        """Length of the longest part, in tokens."""
        return min(self.row, max(map(len, self.texts), default=1) - 1)

    @property
    def items(self) -> str:
        return "texts"

    @property
    def predicted(self) -> int:
        """Number of ids to predict: all but each ``<s>``."""
        return sum(len(text) - 1 for text in self.texts)

    def batches(self, max_positions: int, seed: int, skip: int, every: int) -> Iterator[TextBatch]:
        batches = (batch for epoch in count() for batch in self._epoch(max_positions, seed, epoch))
        for rows in islice(batches, skip, None, every):
            yield self._batch(rows)

    def in_order(self, max_positions: int) -> Iterator[TextBatch]:
        for rows in _grouped(packed(self._parts(range(len(self))), self.row), max_positions // self.row):
            yield self._batch(rows)

    def numbers(self) -> Iterable[bytes]:
        return (text.tobytes() + b"|" for text in self.texts)

    def _epoch(self, max_positions: int, seed: int, epoch: int) -> Iterator[list[list[Part]]]:
        order = random.Random(f"{seed}/{epoch}")
        drawn = list(range(len(self)))
        order.shuffle(drawn)
        rows = list(packed(self._parts(drawn), self.row))
        order.shuffle(rows)
        return _grouped(rows, max_positions // self.row)

    def _parts(self, order: Iterable[int]) -> Iterator[Part]:
        for index in order:
            predicting = len(self.texts[index]) - 1
            for start in range(0, predicting, self.row):
                yield index, start, min(start + self.row, predicting)

    def _batch(self, rows: Sequence[Sequence[Part]]) -> TextBatch:
        ids, numbers, wanted = [], [], []
        for row in rows:
            ids.append([token for text, start, stop in row for token in self.texts[text][start:stop]])
            wanted.append(
                [token for text, start, stop in row for token in self.texts[text][start + 1 : stop + 1]]
            )
            numbers.append(
                [number for number, (_, start, stop) in enumerate(row) for _ in range(start, stop)]
            )
        return TextBatch(pad(ids, PAD_ID), pad(numbers, -1), pad(wanted, PAD_ID))


def packed(parts: Iterable[Part], row: int) -> Iterator[list[Part]]:
    """Puts each part into the open row that it fills best, or into a new row."""
    rows: list[tuple[int, list[Part]]] = []  # the places left, and the row
    for part in parts:
        length = part[2] - part[1]
        fitting = [(left, place) for place, (left, _) in enumerate(rows) if left >= length]
        if fitting:
            left, place = min(fitting)
            rows[place][1].append(part)
            rows[place] = left - length, rows[place][1]
        else:
            rows.append((row - length, [part]))
        if len(rows) > OPEN_ROWS:
            yield rows.pop(rows.index(min(rows, key=lambda each: each[0])))[1]
    for _, last in rows:
        yield last


def _grouped(rows: Iterable[list[Part]], most: int) -> Iterator[list[list[Part]]]:
    remaining = iter(rows)
    while group := list(islice(remaining, max(1, most))):
        yield group


def encode_texts(texts: Sequence[str], tokenizer: Tokenizer, row: int) -> PackedTexts:
    """Converts texts to ids, for rows of so many positions."""
    return PackedTexts([array("i", (BOS_ID, *ids, EOS_ID)) for ids in tokenizer.encode_all(texts)], row)
