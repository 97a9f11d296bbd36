"""Dropout, seen: what the maps of a sentence do while parts of the model are switched off at random."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from transformer.model.network import EncoderDecoder
from transformer.model.sites import AttentionKind
from transformer.model.watching.explicit import explicit_attention
from transformer.model.watching.observer import Attended, AttentionInputs, Bystander
from transformer.runs.translator import Translator
from transformer.trace.view import Window
from transformer.what_if.untrained import seeded

SHOWN = (1, 2, 3)
"""Seeds of the runs that are shown."""
RUNS = 16
"""Runs that the standard deviation is over; their seeds count from 1."""
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Flicker:
    """The maps of one attention in several runs with dropout."""

    rate: float  # the probability with which a number is dropped
    runs: int  # how many runs there were
    shown: Floats  # (shown runs, layers, heads, queries, keys) weights
    mean: Floats  # (layers, heads, queries, keys) mean weight over all runs
    spread: Floats  # (layers, heads, queries, keys) standard deviation over all runs

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.shown.nbytes + self.mean.nbytes + self.spread.nbytes


class _Weights(Bystander):
    """Keeps the weights of one attention."""

    def __init__(self, kind: AttentionKind, window: Window) -> None:
        self._kind, self._window = kind, window
        self.layers: list[Floats] = []

    def attention(self, asked: AttentionInputs) -> Attended:
        if asked.kind == self._kind:
            own = explicit_attention(asked)
            weights = own.weigh(own.scores)[0]
            self.layers.append(weights[:, self._window.queries, self._window.keys].float().cpu().numpy())
        return super().attention(asked)


@torch.inference_mode()
def flicker(
    translator: Translator,  # the model
    text: str,  # the source
    target: Sequence[int],  # ids of the whole target, `</s>` included; it is forced
    kind: AttentionKind,  # whose maps
    window: Window,  # which part of them
) -> Flicker:
    """Runs a pair, once per seed, through a copy of a model in training mode; the model stays as it is.

    Dropout acts as in training: on embeddings, and on what a sub-layer adds to the stream (section 5.4).
    InputError if the source is empty or too long.
    """
    model = copy.deepcopy(translator.model).train()
    source = (*translator.ids(text), translator.config.eos_id)
    seeds = range(1, RUNS + 1)
    found = np.stack([_run(model, source, target, _Weights(kind, window), seed) for seed in seeds])
    return Flicker(
        translator.config.dropout, RUNS, found[[seed - 1 for seed in SHOWN]], found.mean(0), found.std(0)
    )


def _run(
    model: EncoderDecoder, source: Sequence[int], target: Sequence[int], watching: _Weights, seed: int
) -> Floats:
    """(layers, heads, queries, keys) weights of one run."""
    device = model.embedding.weight.device
    shifted = (model.config.bos_id, *target[:-1])
    with seeded(seed):
        memory = model.encode(torch.tensor([source], device=device), observer=watching)
        model.decode(torch.tensor([shifted], device=device), memory, observer=watching)
    return np.stack(watching.layers)
