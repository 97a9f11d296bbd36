"""Parallel text: files read and checked, sentences as ids, batches by token count with little padding."""

from __future__ import annotations

import gzip
import random
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from .tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer

POOL_PAIRS = 200_000


class DataError(ValueError):
    """A data file cannot be used; the message names the file, the line and the reason."""


@dataclass(frozen=True)
class SentencePair:
    """One sentence and its translation, as plain text."""

    source: str
    target: str


@dataclass(frozen=True)
class Batch:
    """Sentences of about one length, ready for the model; padded with id 0.

    Attributes:
        src_ids: Source ids, each row ending in `</s>` (batch, source).
        tgt_input_ids: What the decoder reads: `<s>` and the target (batch, target).
        tgt_ids: What it should predict: the target and `</s>` (batch, target).
    """

    src_ids: Tensor
    tgt_input_ids: Tensor
    tgt_ids: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device."""
        return Batch(
            *(ids.to(device, non_blocking=True) for ids in (self.src_ids, self.tgt_input_ids, self.tgt_ids))
        )


@dataclass(frozen=True)
class EncodedPairs:
    """Sentence pairs as ids, without special ids.

    Attributes:
        source: Ids of each source.
        target: Ids of each target.
        weights: How often each pair stands in an epoch: 2 is twice, 0.35 in 35 of 100 epochs; None is once.
    """

    source: list[array[int]]
    target: list[array[int]]
    weights: array[float] | None = None

    def __len__(self) -> int:
        return len(self.source)

    @property
    def longest(self) -> int:
        """The longest sequence in tokens, `</s>` included."""
        return 1 + max(
            (max(len(s), len(t)) for s, t in zip(self.source, self.target, strict=True)), default=0
        )

    def within(self, max_tokens: int) -> EncodedPairs:
        """The pairs whose sides, `</s>` included, have at most `max_tokens` tokens."""
        both = enumerate(zip(self.source, self.target, strict=True))
        kept = [i for i, (s, t) in both if max(len(s), len(t)) < max_tokens]
        weights = None if self.weights is None else array("f", (self.weights[i] for i in kept))
        return EncodedPairs([self.source[i] for i in kept], [self.target[i] for i in kept], weights)

    def draw(self, order: random.Random) -> list[int]:
        """Numbers of the pairs of one epoch, each as often as its weight says, chance deciding the rest."""
        if self.weights is None:
            return list(range(len(self)))
        return [i for i, weight in enumerate(self.weights) for _ in range(int(weight + order.random()))]


@dataclass(frozen=True)
class Bounds:
    """How much of a text file is read, counted after unpacking and while reading.

    A gzip file of 17 kB can unpack to gigabytes, so the size of the file itself bounds nothing.

    Attributes:
        total: Most bytes.
        line: Most bytes of one line.
        lines: Most lines.
    """

    total: int = 2**36
    line: int = 2**20
    lines: int = 10**9


TRUSTED = Bounds()
"""For files that the person who runs the program chose."""


def read_lines(path: str | Path, bounds: Bounds = TRUSTED) -> Iterator[tuple[int, str]]:
    """Lines of a UTF-8 text file with their numbers from 1; `.gz` files are unpacked.

    Raises:
        DataError: The file is missing, is damaged, is not UTF-8, or exceeds the bounds.
    """
    path = Path(path)
    number, left = 0, bounds.total
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            while raw := file.readline(bounds.line + 1):
                number, left = number + 1, left - len(raw)
                if len(raw) > bounds.line:
                    raise DataError(f"{path}:{number}: this line has more than {_size(bounds.line)}.")
                if left < 0:
                    raise DataError(f"{path}: the file unpacks to more than {_size(bounds.total)}.")
                if number > bounds.lines:
                    raise DataError(f"{path}: the file has more than {bounds.lines:,} lines.")
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                yield number, text.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}:{number}: this line is not UTF-8 text (byte {error.start + 1}).") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path}:{number + 1}: the gzip file is damaged or cut off here ({error})."
        ) from error
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read: {error.strerror or error}.") from error


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:,.0f} MB" if n_bytes >= 2**20 else f"{n_bytes / 2**10:,.0f} kB"


def read_pairs(path: str | Path) -> list[SentencePair]:
    """Reads `source<TAB>target` lines.

    Raises:
        DataError: A line has another number of columns or an empty one, or the file has no lines.
    """
    pairs = [_pair(path, number, line) for number, line in read_lines(path)]
    if not pairs:
        raise DataError(f"{path}: the file is empty; it needs one `source<TAB>target` pair a line.")
    return pairs


def _pair(path: str | Path, number: int, line: str) -> SentencePair:
    columns = line.split("\t")
    if len(columns) != 2:
        raise DataError(
            f"{path}:{number}: expected source, tab, target; found {len(columns)} column"
            f"{'' if len(columns) == 1 else 's'}."
        )
    source, target = columns
    if not source.strip() or not target.strip():
        raise DataError(f"{path}:{number}: the {'target' if source.strip() else 'source'} is empty.")
    return SentencePair(source, target)


def encode_pairs(
    pairs: Sequence[SentencePair], tokenizer: Tokenizer, weights: Sequence[float] | None = None
) -> EncodedPairs:
    """Sentences as ids; `weights` has one number per pair, see `EncodedPairs`."""
    source, target = ([array("i", ids) for ids in tokenizer.encode_all(side)] for side in _sides(pairs))
    return EncodedPairs(source, target, None if weights is None else array("f", weights))


def _sides(pairs: Sequence[SentencePair]) -> tuple[list[str], list[str]]:
    return [pair.source for pair in pairs], [pair.target for pair in pairs]


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """Rows of ids filled up with padding (rows, longest)."""
    width = max(map(len, rows))
    return torch.tensor([list(row) + [PAD_ID] * (width - len(row)) for row in rows], dtype=torch.long)


def make_batch(data: EncodedPairs, rows: Sequence[int]) -> Batch:
    """The pairs with these numbers as one padded batch."""
    source = [[*data.source[row].tolist(), EOS_ID] for row in rows]
    target = [data.target[row].tolist() for row in rows]
    return Batch(
        pad(source), pad([[BOS_ID, *ids] for ids in target]), pad([[*ids, EOS_ID] for ids in target])
    )


def group_by_length(data: EncodedPairs, rows: Sequence[int], max_positions: int) -> list[list[int]]:
    """Cuts rows, sorted by length, into batches.

    Args:
        data: The pairs.
        rows: Numbers of pairs; equally long ones keep this order.
        max_positions: Most positions of either side of one batch, padding included; a single pair that is
            longer is a batch of its own.
    """
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
    """The batches of one epoch, as numbers of pairs; the same for the same seed and epoch.

    All pairs are shuffled and cut into pools; a pool is sorted by length, cut into batches, and the batches
    of all pools are shuffled: little padding, another mixture in each epoch.
    """
    order = random.Random(f"{seed}/{epoch}")
    rows = data.draw(order)
    order.shuffle(rows)
    pools = (rows[start : start + POOL_PAIRS] for start in range(0, len(rows), POOL_PAIRS))
    batches = [batch for pool in pools for batch in group_by_length(data, pool, max_positions)]
    order.shuffle(batches)
    return batches


def training_batches(data: EncodedPairs, max_positions: int, seed: int, skip: int = 0) -> Iterator[Batch]:
    """Batches without end, epoch after epoch.

    Args:
        data: The pairs.
        max_positions: See `group_by_length`.
        seed: Decides the order.
        skip: Number of batches already used by an earlier run.
    """
    epoch = 0
    while True:
        batches = epoch_order(data, max_positions, seed, epoch)
        for rows in batches[skip:]:
            yield make_batch(data, rows)
        skip = max(0, skip - len(batches))
        epoch += 1


def evaluation_batches(data: EncodedPairs, max_positions: int) -> Iterator[Batch]:
    """Every pair once, shortest first."""
    for rows in group_by_length(data, range(len(data)), max_positions):
        yield make_batch(data, rows)
