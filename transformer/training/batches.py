"""Converts sentences to ids, and groups them by length into batches with little padding."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, islice

import torch
from torch import Tensor

from transformer.config import Side
from transformer.text.pairs import SentencePair
from transformer.text.tokenizer import PAD_ID, SPECIAL_IDS, SpecialIds, Tokenizer
from transformer.training.data import pad

POOL_PAIRS = 200_000


@dataclass(frozen=True)
class Batch:
    """Sentences of similar length, ready for the model."""

    src_ids: Tensor  # source ids, each row ending in `</s>` (batch, source)
    tgt_input_ids: Tensor  # ids that the decoder reads: `<s>` and the target (batch, target)
    tgt_ids: Tensor  # ids that the decoder should predict: the target and `</s>` (batch, target)
    pad_id: int = PAD_ID  # what the ids are padded with

    def to(self, device: torch.device) -> Batch:
        source, inputs, wanted = (each.to(device, non_blocking=True) for each in self.tensors)
        return Batch(source, inputs, wanted, self.pad_id)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self.src_ids, self.tgt_input_ids, self.tgt_ids

    @property
    def read(self) -> tuple[Tensor, ...]:
        return self.src_ids, self.tgt_input_ids

    @property
    def wanted(self) -> Tensor:
        return self.tgt_ids

    @property
    def rows(self) -> int:
        return len(self.src_ids)

    @property
    def lengths(self) -> Mapping[Side, int]:
        return {"encoder": self.src_ids.shape[1], "decoder": self.tgt_ids.shape[1]}

    @property
    def predicted(self) -> int:
        return int((self.tgt_ids != self.pad_id).sum())


@dataclass(frozen=True)
class EncodedPairs:
    """Sentence pairs as ids, without special ids."""

    source: list[array[int]]  # ids of each source
    target: list[array[int]]  # ids of each target
    # how often each pair occurs in an epoch: 2 is twice, 0.35 in 35 of 100 epochs; None is once
    weights: array[float] | None = None
    special: SpecialIds = SPECIAL_IDS  # ids that stand around them in a batch

    def __len__(self) -> int:
        return len(self.source)

    @property
    def longest(self) -> int:
        """Length of the longest sequence in tokens, with `</s>`."""
        return 1 + max(map(len, chain(self.source, self.target)), default=0)

    def within(self, max_tokens: int) -> EncodedPairs:
        """The pairs whose sides have at most `max_tokens` tokens each, with `</s>`."""
        both = enumerate(zip(self.source, self.target, strict=True))
        kept = [i for i, (s, t) in both if max(len(s), len(t)) < max_tokens]
        weights = None if self.weights is None else array("f", (self.weights[i] for i in kept))
        source, target = ([side[i] for i in kept] for side in (self.source, self.target))
        return replace(self, source=source, target=target, weights=weights)

    @property
    def items(self) -> str:
        return "pairs"

    def batches(self, max_positions: int, seed: int, skip: int, every: int) -> Iterator[Batch]:
        batches = (rows for epoch in count() for rows in epoch_order(self, max_positions, seed, epoch))
        for rows in islice(batches, skip, None, every):
            yield make_batch(self, rows)

    def in_order(self, max_positions: int) -> Iterator[Batch]:
        """Yields every pair once, shortest first."""
        for rows in group_by_length(self, range(len(self)), max_positions):
            yield make_batch(self, rows)

    def numbers(self) -> Iterator[bytes]:
        for ids in (*self.source, *self.target):
            yield ids.tobytes() + b"|"
        if self.weights is not None:
            yield self.weights.tobytes()

    def draw(self, order: random.Random) -> list[int]:
        """Indices of the pairs of one epoch; each weight's fraction is the chance of one more copy."""
        if self.weights is None:
            return list(range(len(self)))
        return [i for i, weight in enumerate(self.weights) for _ in range(int(weight + order.random()))]


def encode_pairs(
    pairs: Sequence[SentencePair], tokenizer: Tokenizer, weights: Sequence[float] | None = None
) -> EncodedPairs:
    """Converts pairs to ids; `weights` has one number per pair, see `EncodedPairs`."""
    sides = [pair.source for pair in pairs], [pair.target for pair in pairs]
    source, target = ([array("i", ids) for ids in tokenizer.encode_all(side)] for side in sides)
    kept = None if weights is None else array("f", weights)
    return EncodedPairs(source, target, kept, special=tokenizer.special)


def make_batch(data: EncodedPairs, rows: Sequence[int]) -> Batch:
    """The pairs with these indices as one padded batch."""
    fill, bos, eos, _ = data.special
    source = [[*data.source[row].tolist(), eos] for row in rows]
    target = [data.target[row].tolist() for row in rows]
    inputs, wanted = [[bos, *ids] for ids in target], [[*ids, eos] for ids in target]
    return Batch(pad(source, fill), pad(inputs, fill), pad(wanted, fill), pad_id=fill)


def group_by_length(
    data: EncodedPairs,  # the pairs
    rows: Sequence[int],  # indices of pairs; pairs of equal length keep this order
    # largest number of positions, with padding, of either side of a batch; a longer pair gets a batch of its
    # own
    max_positions: int,
) -> list[list[int]]:
    """Sorts rows by length and cuts them into batches."""
    batches: list[list[int]] = []
    batch: list[int] = []
    longest = 0
    for row in sorted(rows, key=lambda row: (len(data.source[row]), len(data.target[row]))):
        wider = max(longest, len(data.source[row]) + 1, len(data.target[row]) + 1)
        if batch and wider * (len(batch) + 1) > max_positions:
            batches.append(batch)
            batch, wider = [], max(len(data.source[row]), len(data.target[row])) + 1
        batch.append(row)
        longest = wider
    return [*batches, batch] if batch else batches


def epoch_order(data: EncodedPairs, max_positions: int, seed: int, epoch: int) -> list[list[int]]:
    """The batches of one epoch, as indices of pairs; the same for the same seed and epoch.

    All pairs are shuffled and cut into pools. Each pool is sorted by length and cut into batches, and the
    batches of all pools are shuffled. This keeps padding small and mixes the pairs anew in each epoch.
    """
    order = random.Random(f"{seed}/{epoch}")
    rows = data.draw(order)
    order.shuffle(rows)
    pools = (rows[start : start + POOL_PAIRS] for start in range(0, len(rows), POOL_PAIRS))
    batches = [batch for pool in pools for batch in group_by_length(data, pool, max_positions)]
    order.shuffle(batches)
    return batches
