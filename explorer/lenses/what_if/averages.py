"""The mean output of every head over a sample, which an ablation by "mean" puts in the head's place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from transformer.config import AttentionKind
from transformer.interventions import HeadMeans
from transformer.translator import InputError, Translator


class Averager:
    """Runs sentences through a model one by one, and averages what each head puts out, over all rows."""

    def __init__(
        self,
        translator: Translator,  # the model
        # the sentences with their targets, which are forced; without a target, they are translated
        pairs: Sequence[tuple[str, str | None]],
    ) -> None:
        self._translator, self._pairs = translator, tuple(pairs)
        config = translator.config
        self._sums = {
            kind: torch.zeros(site.n_layers, config.n_heads, config.d_head, dtype=torch.float64)
            for kind, site in config.sites.items()
        }
        self._rows = dict.fromkeys(config.sites, 0)
        self.read = 0  # sentences read so far

    @property
    def total(self) -> int:
        """Number of sentences."""
        return len(self._pairs)

    def run(self) -> Iterator[int]:
        """Reads the sentences one by one; yields how many are done. To stop, leave the loop."""
        for number, pair in enumerate(self._pairs, start=1):
            try:
                self._take(*pair)
                self.read += 1
            except InputError:
                pass  # too long for this model
            yield number

    def _take(self, source: str, target: str | None) -> None:
        translator = self._translator
        done = translator.translate(source) if target is None else translator.force(source, target)
        assert done.attention is not None
        for kind, layers in done.attention.layers.items():
            self._sums[kind] += torch.stack([layer.output.sum(1) for layer in layers])
            self._rows[kind] += layers[0].shape[1]

    def means(self, about: Mapping[str, str]) -> HeadMeans:
        """The means so far, and ``about``: what was measured; ValueError if no sentence has been read."""
        if not self.read:
            raise ValueError("No sentence has been read yet.")
        return HeadMeans({kind: self._mean(kind) for kind in self._sums}, dict(about))

    def _mean(self, kind: AttentionKind) -> Tensor:
        return (self._sums[kind] / self._rows[kind]).float()
