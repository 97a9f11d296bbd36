"""Many forced passes over one sentence at once: each row of a batch is a run with a change of its own.

Interventions change every row of a batch alike. If hundreds of runs differ in one vector each, running them
one by one would spend most of the time on calls; here a pass takes as many rows as fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from transformer.config import Side
from transformer.hooks import At, Edit, Hooks
from transformer.interventions import HeadOutput, PatchPlace
from transformer.interventions.edits import patched_name
from transformer.model import EncoderDecoder

MOST_TOKENS = 4096
"""Most tokens of a pass."""
MOST_LOGITS = 1 << 22
"""Logits that are computed at a time."""


class Swap(NamedTuple):
    """A vector that stands in the place of the model's own."""

    place: PatchPlace  # where
    vector: Tensor  # (width,) what stands there; without a position also (length, width)
    position: int | None = None  # the position that it stands at, from 0; None for all

    @property
    def side(self) -> Side:
        """The first stack that computes something else."""
        return self.place.side


class Differing(Protocol):
    """Something that differs in a run."""

    @property
    def side(self) -> Side:
        """The first stack that computes something else."""


Difference = TypeVar("Difference", bound=Differing)
OneRun = Sequence[Swap]
"""What differs in one run."""


def swapped(runs: Sequence[Sequence[Swap]]) -> dict[str, list[Edit]]:
    """Edits that give each row of a batch the vectors of its own run."""
    by_place: dict[PatchPlace, list[tuple[int, Swap]]] = {}
    for row, swaps in enumerate(runs):
        for swap in swaps:
            by_place.setdefault(swap.place, []).append((row, swap))
    edits: dict[str, list[Edit]] = {}
    for place, rows in by_place.items():
        edits.setdefault(patched_name(place), []).append(_swap(place, rows))
    return edits


def _swap(place: PatchPlace, swaps: Sequence[tuple[int, Swap]]) -> Edit:
    def edit(own: Tensor, at: At) -> Tensor:
        changed = own.clone()
        part = changed[:, place.head] if isinstance(place, HeadOutput) else changed
        for row, swap in swaps:
            part[row, slice(None) if swap.position is None else swap.position] = swap.vector.to(own)
        return changed

    return edit


class Passes(Generic[Difference]):
    """Forced passes over one source and one target."""

    def __init__(
        self,
        model: EncoderDecoder,  # in ``eval()`` mode
        src_ids: Sequence[int],  # the source as the model reads it, ``</s>`` included
        target_ids: Sequence[int],  # the output
        edits: Callable[
            [Sequence[Sequence[Difference]]], Mapping[str, Sequence[Edit]]
        ],  # what changes the rows of a pass
        most_tokens: int = MOST_TOKENS,  # tokens of a pass: rows × the longer of source and target
    ) -> None:
        self._model, device = model, model.embedding.weight.device
        self._edits, self._most_tokens = edits, most_tokens
        self._source = torch.tensor([src_ids], device=device)
        self._read = torch.tensor([[model.config.bos_id, *target_ids[:-1]]], device=device)
        self._written = torch.tensor(target_ids, device=device)
        with torch.inference_mode():
            self._memory = model.encode(self._source)

    def log_probs(self, runs: Sequence[Sequence[Difference]]) -> Tensor:
        """(runs, target) float32: the log-probability of each target token in each run, in nats."""
        parts = list(self.parts(runs))
        return torch.cat(parts) if parts else torch.zeros(0, len(self._written))

    def parts(self, runs: Sequence[Sequence[Difference]]) -> Iterator[Tensor]:
        """As ``log_probs``, but yields the rows of each pass at once."""
        rows = max(1, self._most_tokens // max(self._source.shape[1], self._read.shape[1]))
        for start in range(0, len(runs), rows):
            yield self._pass(runs[start : start + rows])

    @torch.inference_mode()
    def _pass(self, runs: Sequence[Sequence[Difference]]) -> Tensor:
        hooks, count = Hooks((), self._edits(runs)), len(runs)
        if any(each.side == "encoder" for changes in runs for each in changes):
            memory = self._model.encode(self._source.expand(count, -1), hooks=hooks)
        else:
            memory = self._memory.expand(count, -1, -1)
        features = self._model.decode(self._read.expand(count, -1), memory, hooks=hooks)
        return torch.cat([self._chosen(part) for part in torch.split(features, self._logit_rows)]).cpu()

    @property
    def _logit_rows(self) -> int:
        return max(1, MOST_LOGITS // (self._read.shape[1] * self._model.config.n_target_pieces))

    def _chosen(self, features: Tensor) -> Tensor:
        """(rows, target, d_model) → (rows, target) log-probabilities of the target's tokens."""
        logits = self._model.logits(features).float()
        written = self._written.expand(len(logits), -1)[..., None]
        return logits.gather(-1, written)[..., 0] - logits.logsumexp(-1)
