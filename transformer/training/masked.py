"""Texts with masked pieces, from which an encoder alone learns (Devlin et al. 2019, 3.1)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from transformer.text.tokenizer import Tokenizer
from transformer.text.words import MASK
from transformer.training.data import (
    Batch,
    EncodedPairs,
    epoch_order,
    group_by_length,
    make_batch,
)

CHOSEN = 0.15
"""Share of the pieces that a model has to predict; of each text, at least one."""
HIDDEN, REPLACED = 0.8, 0.1
"""Shares of these that are masked, and that are another piece; the rest stands as it was."""
FIXED_SEED = 0
"""Chooses the pieces on which a model is measured: at each evaluation the same ones."""


@dataclass(frozen=True)
class MaskedTexts(EncodedPairs):
    """Texts as ids, each after its start token; every batch masks other pieces of them.

    ``source`` and ``target`` are the same texts; of a batch, ``src_ids`` is what the encoder reads,
    and ``tgt_ids`` has the ids to predict, padding elsewhere.
    """

    noun: ClassVar[str] = "texts"
    mask_id: int = field(kw_only=True)
    n_pieces: int = field(kw_only=True)  # of the vocabulary

    def batches(
        self,
        max_positions: int,
        seed: int,
        skip: int = 0,
        every: int = 1,
        few_shapes: bool = False,
    ) -> Iterator[Batch]:
        """As ``EncodedPairs.batches``; the same batch of the same seed has the same masks."""
        orders = (epoch_order(self, max_positions, seed, epoch, few_shapes) for epoch in count())
        numbered = enumerate(chain.from_iterable(orders))
        for number, rows in islice(numbered, skip, None, every):
            batch = make_batch(self, rows, max_positions if few_shapes else 0)
            yield self._masked(batch, np.random.default_rng([seed, number]))

    def in_order(self, max_positions: int) -> Iterator[Batch]:
        """Yields every text once, shortest first, always with the same masks."""
        draw = np.random.default_rng(FIXED_SEED)
        for rows in group_by_length(self, range(len(self)), max_positions):
            yield self._masked(make_batch(self, rows), draw)

    def _masked(self, batch: Batch, draw: np.random.Generator) -> Batch:
        """A batch with pieces that are masked, and nothing else to predict."""
        ids = batch.src_ids.numpy()
        chosen = self._chosen(ids, draw)
        wanted = np.where(chosen, ids, self.special.pad)
        fate = draw.random(ids.shape)
        read = np.where(chosen & (fate < HIDDEN), self.mask_id, ids)
        replaced = chosen & (fate >= HIDDEN) & (fate < HIDDEN + REPLACED)
        read[replaced] = draw.integers(max(self.special) + 1, self.n_pieces, replaced.sum())
        return replace(
            batch,
            src_ids=torch.from_numpy(read),
            tgt_ids=torch.from_numpy(wanted),
            tokens=int(chosen.sum()),
        )

    def _chosen(self, ids: NDArray[np.int64], draw: np.random.Generator) -> NDArray[np.bool_]:
        """(rows, length) whether a piece is to be predicted: no special one, and at least one of
        each text."""
        ordinary = ~np.isin(ids, [*self.special[:3], self.mask_id])
        drawn = np.where(ordinary, draw.random(ids.shape), 1.0)
        lowest = drawn == drawn.min(1, keepdims=True)
        return ordinary & ((drawn < CHOSEN) | lowest)


def encode_texts(texts: Sequence[str], tokenizer: Tokenizer) -> MaskedTexts:
    """Converts texts to ids; ValueError if the vocabulary has no mask."""
    if MASK not in tokenizer.source.ids:
        raise ValueError(f"The vocabulary has no piece {MASK}; train one with masks.")
    bos = tokenizer.special.bos
    ids = [array("i", [bos, *text]) for text in tokenizer.encode_all(texts)]
    return MaskedTexts(
        source=ids,
        target=ids,
        special=tokenizer.special,
        mask_id=tokenizer.source.ids[MASK],
        n_pieces=tokenizer.vocab_size,
    )
