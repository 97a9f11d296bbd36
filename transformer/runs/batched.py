"""Many forced passes over one sentence at once: each row of a batch is a run with a change of its own.

``Changes`` answers every row of a batch alike. If hundreds of runs differ in one vector each, running them
one by one would spend most of the time on calls; here a pass takes as many rows as fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from transformer.interventions import Embeddings, EncoderOutput, HeadOutput, PatchPlace, Stream
from transformer.model.network import EncoderDecoder
from transformer.model.sites import Place, Side
from transformer.model.watching.observer import (
    Attended,
    AttentionInputs,
    Bystander,
    Entered,
    Observer,
    Passed,
)

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


class RowChanges(Bystander):
    """Answers each row of a batch with the vectors of its own run."""

    def __init__(
        self,
        runs: Sequence[OneRun],  # one for each row
    ) -> None:
        self._swaps: dict[PatchPlace, list[tuple[int, Swap]]] = {}
        for row, swaps in enumerate(runs):
            for swap in swaps:
                self._swaps.setdefault(swap.place, []).append((row, swap))
        self._heads: dict[Place, list[HeadOutput]] = {}
        for place in self._swaps:
            if isinstance(place, HeadOutput):
                self._heads.setdefault((place.kind, place.layer), []).append(place)

    def embedding(self, entered: Entered) -> Tensor:
        """The input of a stack, swapped."""
        return self._swapped(Embeddings(entered.side), entered.total)

    def attention(self, asked: AttentionInputs) -> Attended:
        """The output of fused attention, with the outputs of heads swapped."""
        found = super().attention(asked)
        places = self._heads.get((asked.kind, asked.layer), ())
        if not places:
            return found
        output = found.output.clone()
        for place in places:
            output[:, place.head] = self._swapped(place, output[:, place.head])
        return Attended(output)

    def residual(self, passed: Passed) -> Tensor:
        """The stream after a sub-layer, swapped."""
        return self._swapped(Stream(passed.sublayer), passed.output)

    def memory(self, own: Tensor) -> Tensor:
        """The encoder's output, swapped."""
        return self._swapped(EncoderOutput(), own)

    def _swapped(self, place: PatchPlace, own: Tensor) -> Tensor:
        swaps = self._swaps.get(place)
        if swaps is None:
            return own
        made = own.clone()
        for row, swap in swaps:
            made[row, slice(None) if swap.position is None else swap.position] = swap.vector.to(own)
        return made


class Passes(Generic[Difference]):
    """Forced passes over one source and one target."""

    def __init__(
        self,
        model: EncoderDecoder,  # in ``eval()`` mode
        src_ids: Sequence[int],  # the source as the model reads it, ``</s>`` included
        target_ids: Sequence[int],  # the output
        watched: Callable[[Sequence[Sequence[Difference]]], Observer],  # what changes the rows of a pass
        most_tokens: int = MOST_TOKENS,  # tokens of a pass: rows × the longer of source and target
    ) -> None:
        self._model, device = model, model.embedding.weight.device
        self._watched, self._most_tokens = watched, most_tokens
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
        observer, count = self._watched(runs), len(runs)
        if any(each.side == "encoder" for changes in runs for each in changes):
            memory = self._model.encode(self._source.expand(count, -1), observer=observer)
        else:
            memory = self._memory.expand(count, -1, -1)
        features = self._model.decode(self._read.expand(count, -1), memory, observer=observer)
        return torch.cat([self._chosen(part) for part in torch.split(features, self._logit_rows)]).cpu()

    @property
    def _logit_rows(self) -> int:
        return max(1, MOST_LOGITS // (self._read.shape[1] * self._model.config.n_target_pieces))

    def _chosen(self, features: Tensor) -> Tensor:
        """(rows, target, d_model) → (rows, target) log-probabilities of the target's tokens."""
        logits = self._model.logits(features).float()
        written = self._written.expand(len(logits), -1)[..., None]
        return logits.gather(-1, written)[..., 0] - logits.logsumexp(-1)
