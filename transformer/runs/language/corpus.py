"""Log-probabilities of many texts, in padded batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from transformer.interventions import Intervention
from transformer.interventions.edits import Change
from transformer.runs.corpus import batches
from transformer.runs.language.generator import TextGenerator
from transformer.trace import hooks_of
from transformer.training.data import pad


@torch.inference_mode()
def log_probs(
    generator: TextGenerator,  # the model
    texts: Sequence[str],  # not empty; a text has at most ``max_positions`` tokens
    changes: Sequence[Intervention] = (),  # changes of heads that hold in every text
) -> NDArray[np.float64]:
    """(texts,) natural logs of the probabilities of whole texts, ``</s>`` included.

    Raises:
        InputError: A text is empty or too long.
    """
    config, found = generator.config, np.zeros(len(texts))
    rows = [generator.ids(text) for text in texts]
    for group in batches([len(row) + 1 for row in rows], shortest_first=True):
        read = pad([(config.bos_id, *rows[place]) for place in group], config.pad_id).to(generator.device)
        wanted = pad([(*rows[place], config.eos_id) for place in group], -100).to(generator.device)
        logits = _logits(generator, read, changes)
        losses = F.cross_entropy(logits.transpose(1, 2), wanted, reduction="none", ignore_index=-100)
        found[group] = -losses.sum(1).double().cpu().numpy()
    return found


def _logits(generator: TextGenerator, read: Tensor, changes: Sequence[Intervention]) -> Tensor:
    """(batch, length) ids → (batch, length, vocab_size), with changes that need nothing computed first."""
    model = generator.model
    hooks = hooks_of(model.config, None, [Change(each) for each in changes])
    return model.logits(model.features(read, hooks=hooks)).float()
