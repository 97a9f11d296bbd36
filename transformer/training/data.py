"""Sentence pairs as ids, and batches of pairs of similar length (section 5.1)."""

from __future__ import annotations

import hashlib
import random
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer.text.pairs import DataError, SentencePair
from transformer.text.tokenizer import SPECIAL_IDS, SpecialIds, Tokenizer

POOL_PAIRS = 200_000


@dataclass(frozen=True)
class Batch:
    """Sentences of similar length, ready for the model; padding has the padding's id."""

    src_ids: Tensor  # source ids, each row ending in `</s>` (batch, source)
    tgt_input_ids: Tensor  # ids that the decoder reads: `<s>` and the target (batch, target)
    tgt_ids: Tensor  # ids that the decoder should predict: the target and `</s>` (batch, target)
    src_padding: Tensor | None  # (batch, source) bool, True for tokens; None if nothing is padded
    tokens: int  # ids to predict, without padding

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, and the lengths of source and target, with padding."""
        rows, source = self.src_ids.shape
        return rows, source, self.tgt_ids.shape[1]

    def to(self, device: torch.device, copy: bool = False) -> Batch:
        tensors = (self.src_ids, self.tgt_input_ids, self.tgt_ids)
        source, inputs, wanted = (tensor.to(device, copy=copy) for tensor in tensors)
        padding = None if self.src_padding is None else self.src_padding.to(device, copy=copy)
        return Batch(source, inputs, wanted, padding, self.tokens)


@dataclass(frozen=True)
class EncodedPairs:
    """Sentence pairs as ids, without special ids."""

    noun: ClassVar[str] = "pairs"
    """What several of them are called."""

    source: list[array[int]]  # ids of each source
    target: list[array[int]]  # ids of each target
    # how often each pair occurs in an epoch: 2 is twice, 0.35 in 35 of 100 epochs; None is once
    weights: array[float] | None = None
    special: SpecialIds = SPECIAL_IDS  # ids that stand around them in a batch

    def __len__(self) -> int:
        return len(self.source)

    def length(self, row: int) -> int:
        """Length of the longer side of a pair in tokens, with `</s>`."""
        return 1 + max(len(self.source[row]), len(self.target[row]))

    @property
    def longest(self) -> int:
        """Length of the longest sequence in tokens, with `</s>`."""
        return max(map(self.length, range(len(self))), default=1)

    def up_to(self, max_tokens: int) -> EncodedPairs:
        """The pairs whose sides have at most `max_tokens` tokens each, with `</s>`; DataError if
        none has."""
        rows = [row for row in range(len(self)) if self.length(row) <= max_tokens]
        if not rows:
            raise DataError(
                f"No pair has at most {max_tokens} tokens per side; raise --max-length."
            )
        weights = None if self.weights is None else array("f", (self.weights[row] for row in rows))
        source, target = ([side[row] for row in rows] for side in (self.source, self.target))
        return replace(self, source=source, target=target, weights=weights)

    def batches(
        self,
        max_positions: int,  # largest number of positions of either side of a batch, with padding
        seed: int,  # seed of the order
        # batches that are left out first: an earlier run or another process has them
        skip: int = 0,
        every: int = 1,  # 1 yields each of the following batches, N the first of every N
        few_shapes: bool = False,  # whether batches are padded to few shapes, see ``rounded``
    ) -> Iterator[Batch]:
        """Yields batches without end, epoch after epoch."""
        orders = (epoch_order(self, max_positions, seed, epoch, few_shapes) for epoch in count())
        for rows in islice(chain.from_iterable(orders), skip, None, every):
            yield make_batch(self, rows, max_positions if few_shapes else 0)

    def in_order(self, max_positions: int) -> Iterator[Batch]:
        """Yields every pair once, shortest first."""
        for rows in group_by_length(self, range(len(self)), max_positions):
            yield make_batch(self, rows)

    def fingerprint(self) -> str:
        """A digest of all that decides what a run learns."""
        digest = hashlib.sha256()
        for ids in (*self.source, *self.target):
            digest.update(ids.tobytes() + b"|")
        if self.weights is not None:
            digest.update(self.weights.tobytes())
        return digest.hexdigest()


def encode_pairs(
    pairs: Sequence[SentencePair], tokenizer: Tokenizer, weights: Sequence[float] | None = None
) -> EncodedPairs:
    """Converts pairs to ids; `weights` has one number per pair, see `EncodedPairs`."""
    sides = [pair.source for pair in pairs], [pair.target for pair in pairs]
    source, target = ([array("i", ids) for ids in tokenizer.encode_all(side)] for side in sides)
    numbers = None if weights is None else array("f", weights)
    return EncodedPairs(source, target, numbers, special=tokenizer.special)


def rounded(length: int) -> int:
    """The length that few shapes have in place of this one: one of four between 2ⁿ and 2ⁿ⁺¹."""
    step = 1 << max(1, (length - 1).bit_length() - 3)
    return -(-length // step) * step


def make_batch(data: EncodedPairs, rows: Sequence[int], max_positions: int = 0) -> Batch:
    """The pairs with these indices as one padded batch.

    With ``max_positions`` its shape is one of few: its lengths are ``rounded``, and it has as many
    rows as fit, unless most of them would be empty. An empty row reads one token, so that no
    softmax is over nothing, and predicts none.
    """
    fill, bos, eos, _ = data.special
    source, target = ([side[row] for row in rows] for side in (data.source, data.target))
    widths = [max(map(len, side)) + 1 for side in (source, target)]
    height = len(rows)
    if max_positions:
        widths = [rounded(width) for width in widths]
        most = max_positions // max(widths)
        height = most if height < most <= 2 * height else height
    src, wanted = (np.full((height, width), fill, dtype=np.int64) for width in widths)
    _write_rows(src, source, eos)
    _write_rows(wanted, target, eos)
    src[len(rows) :, 0] = eos
    ends = np.zeros((2, height, 1), dtype=np.int64)  # places of `</s>`
    ends[:, : len(rows), 0] = [list(map(len, side)) for side in (source, target)]
    inputs = np.roll(wanted, 1, axis=1)
    inputs[np.arange(widths[1]) > ends[1]] = fill
    inputs[:, 0] = bos
    padding = np.arange(widths[0]) <= ends[0]
    is_full = not max_positions and padding.all()
    return Batch(
        src_ids=torch.from_numpy(src),
        tgt_input_ids=torch.from_numpy(inputs),
        tgt_ids=torch.from_numpy(wanted),
        src_padding=None if is_full else torch.from_numpy(padding),
        tokens=sum(map(len, target)) + len(rows),
    )


def _write_rows(table: NDArray[np.int64], texts: Sequence[array[int]], eos: int) -> None:
    """Writes a text and its ``</s>`` into each of the first rows."""
    lengths = np.array([len(ids) for ids in texts])
    filled = np.arange(table.shape[1]) < lengths[:, None]
    table[: len(texts)][filled] = np.frombuffer(b"".join(texts), dtype=np.intc)
    table[np.arange(len(texts)), lengths] = eos


def group_by_length(
    data: EncodedPairs,  # the pairs
    rows: Sequence[int],  # indices of pairs; pairs of equal length keep this order
    # largest number of positions, with padding, of either side of a batch; a longer pair gets a
    # batch of its own
    max_positions: int,
    width: Callable[[int], int] = int,  # the length that a batch has for its longest text
) -> list[list[int]]:
    """Sorts rows by length and cuts them into batches."""
    batches: list[list[int]] = []
    batch: list[int] = []
    longest = 0
    for row in sorted(rows, key=lambda row: (len(data.source[row]), len(data.target[row]))):
        longer = width(data.length(row))
        if batch and max(longest, longer) * (len(batch) + 1) > max_positions:
            batches.append(batch)
            batch = []
            longest = 0
        batch.append(row)
        longest = max(longest, longer)
    return [*batches, batch] if batch else batches


def epoch_order(
    data: EncodedPairs, max_positions: int, seed: int, epoch: int, few_shapes: bool = False
) -> list[list[int]]:
    """The batches of one epoch, as indices of pairs; the same for the same seed and epoch.

    All pairs are shuffled and cut into pools. Each pool is sorted by length and cut into batches,
    and the batches of all pools are shuffled. This keeps padding small and mixes the pairs anew in
    each epoch.
    """
    order = random.Random(f"{seed}/{epoch}")
    rows = list(range(len(data)))
    if data.weights is not None:  # the fraction of a weight is the chance of one more copy
        rows = [row for row in rows for _ in range(int(data.weights[row] + order.random()))]
    order.shuffle(rows)
    pools = (rows[start : start + POOL_PAIRS] for start in range(0, len(rows), POOL_PAIRS))
    width = rounded if few_shapes else int
    batches = [
        batch for pool in pools for batch in group_by_length(data, pool, max_positions, width)
    ]
    order.shuffle(batches)
    return batches
