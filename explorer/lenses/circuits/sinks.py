"""Why weight on an end or a start token costs little: how short its value is, and what goes without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from explorer.lenses.measures.rewired import rewired
from explorer.lenses.measures.stream import recorded, values_written
from transformer.config import AttentionKind
from transformer.run import Translation
from transformer.text.words import EOS
from transformer.translator import Translator

OUTLIER = 6.0
"""Size of an outlier dimension, as a multiple of the mean over all dimensions of the same tokens."""


@dataclass(frozen=True)
class Sink:
    """A token that rests weight, `</s>` or the first key, over several sentences; layers count from 0."""

    token: str  # the token
    weight: float  # mean weight on it, over rows that see more than one key
    value: float  # length of what its value writes, over the mean length of the other keys'
    stream: float  # length of the stream that the head reads there, over the mean length at the other keys
    outliers: tuple[int, ...]  # dimensions of that stream, from 0, whose size there is at least `OUTLIER`
    lost: float  # nats that a token loses without this key in this head, whose other weights share its weight
    rows: int  # number of tokens of `lost`


def sink(
    translator: Translator,
    runs: Sequence[Translation],
    which: tuple[AttentionKind, int, int],
    tell: Callable[[float], object] = lambda _: None,
) -> Sink:
    """The sink of a head: `</s>` if it is among the keys, else the first key.

    Args:
        translator: The model of the runs.
        runs: Recorded with ``capture=Capture(residual=True)``, without changes.
        which: Kind, layer and head, from 0.
        tell: Hears what share is done.

    Raises:
        NotCapturedError: The residual stream was not recorded.
        UnmeasuredError: The model is no Transformer, or something was changed in a run.
    """
    kind, layer, head = which
    weights, values, lengths, here, lost = [], [], [], [], []
    token = ""
    for done, run in enumerate(runs):
        names = run.labels(kind).keys
        place = names.index(EOS) if EOS in names else 0
        token, others = names[place], np.arange(len(names)) != place
        if not others.any():
            continue
        own, mask = recorded(run).weights(kind, layer)[head], recorded(run).mask(kind, layer, head)
        rests = own[:, place]
        weights += rests[mask.sum(-1) > 1].tolist()
        written = values_written(translator.model, run, kind, layer)[head].norm(dim=-1).numpy()
        values.append(written[place] / max(written[others].mean(), 1e-9))
        stream = _read(translator, run, kind, layer)
        norms = stream.norm(dim=-1).numpy()
        lengths.append(norms[place] / max(norms[others].mean(), 1e-9))
        here.append(stream[place].abs())
        kept = np.where(others, own, 0)
        sums = kept.sum(-1, keepdims=True)
        without = np.where(sums > 1e-6, kept / np.maximum(sums, 1e-6), own).astype(np.float32)
        lost += (-rewired(translator, run, kind, layer, head, without[None])[0]).tolist()
        tell((done + 1) / len(runs))
    size = torch.stack(here).mean(0)
    outliers = torch.nonzero(size >= OUTLIER * size.mean())[:, 0].tolist()
    weight, value, length = (float(np.mean(each)) for each in (weights, values, lengths))
    return Sink(token, weight, value, length, tuple(outliers), float(np.mean(lost)), len(lost))


def _read(translator: Translator, run: Translation, kind: AttentionKind, layer: int) -> torch.Tensor:
    """(keys, d_model) the stream whose keys and values a head takes, before any norm of a sub-layer."""
    site = run.config.sites[kind]
    if site.own_keys:
        return run.stream(site.sublayer(layer)).before
    return run.stream(run.config.stacks[site.key_side].ends()[-1]).stream
