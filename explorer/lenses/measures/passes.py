"""Many forced passes over one source and one target, each with changes of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from transformer.batches import BATCH_POSITIONS, token_log_probs
from transformer.hooks import Edit, Hooks
from transformer.model import EncoderDecoder

T = TypeVar("T")


@torch.inference_mode()
def forced_passes(
    model: EncoderDecoder,  # in ``eval()`` mode
    source: Sequence[int],  # ids as the model reads them, ``</s>`` included
    target: Sequence[int],  # ids of the output
    runs: Sequence[T],  # what differs in each run
    edits: Callable[[Sequence[T]], Mapping[str, Sequence[Edit]]],  # of some runs, each a row of the batch
    most_tokens: int = BATCH_POSITIONS,  # tokens of a pass: rows × the longer of source and target
) -> Iterator[Tensor]:
    """(runs of a pass, target) float32 log-probabilities of the target's tokens, in nats; pass by pass.

    If hundreds of runs differ in one place each, running them one by one would spend most of the time on
    calls; here a pass takes as many rows as fit.
    """
    device = model.embedding.weight.device
    src, written = (torch.tensor([ids], device=device) for ids in (source, target))
    read = torch.tensor([[model.config.bos_id, *target[:-1]]], device=device)
    unchanged = model.encode(src)
    rows = max(1, most_tokens // max(len(source), len(target)))
    for start in range(0, len(runs), rows):
        part = runs[start : start + rows]
        hooks, count = Hooks((), edits(part)), len(part)
        memory = unchanged.expand(count, -1, -1)
        if any(name.startswith("encoder.") for name in hooks.edits):
            memory = model.encode(src.expand(count, -1), hooks=hooks)
        features = model.decode(read.expand(count, -1), memory, hooks=hooks).flatten(0, 1)
        yield token_log_probs(model, features, written.expand(count, -1).flatten()).view(count, -1).cpu()
