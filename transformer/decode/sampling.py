"""Sampling: draws the next token at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from transformer.decode.search import Choose
from transformer.text.kinds import above, at_least, check_fields, whole

MIN_TEMPERATURE = 0.001
"""Lower temperatures only imitate greedy search, and the lowest of them give NaN."""


@dataclass(frozen=True)
class Sampling:
    """Settings for drawing the next token (top-p: Holtzman et al. 2020; top-k: Fan et al. 2018).

    Attributes:
        temperature: Divides the logits; at least ``MIN_TEMPERATURE``.
        top_k: Keep the k most probable tokens; None keeps all.
        top_p: Keep the fewest tokens whose probabilities reach p; None keeps all.
        seed: The same seed gives the same translation.

    Raises:
        ValueError: A value is out of range.
    """

    temperature: Annotated[float, at_least(MIN_TEMPERATURE)] = 1.0
    top_k: Annotated[int, whole(1)] | None = None
    top_p: Annotated[float, above(0, 1)] | None = None
    seed: Annotated[int, whole(0, most=2**63 - 1)] = 0

    def __post_init__(self) -> None:
        check_fields(self)

    def chooser(self) -> Choose:
        """A function that chooses tokens, with its own random generator."""
        generator = torch.Generator().manual_seed(self.seed)

        def choose(log_probs: Tensor) -> Tensor:
            probabilities = self.filtered(log_probs).cpu()
            return torch.multinomial(probabilities, 1, generator=generator)[:, 0].to(log_probs.device)

        return choose

    def filtered(self, log_probs: Tensor) -> Tensor:
        """(rows, vocab_size) probabilities after temperature, top-k and top-p."""
        logits = log_probs / self.temperature
        if self.top_k is not None:
            threshold = logits.topk(min(self.top_k, logits.shape[-1])).values[:, -1:]
            logits = logits.masked_fill(logits < threshold, -torch.inf)
        probabilities = logits.softmax(-1)
        if self.top_p is not None:
            ordered, order = probabilities.sort(-1, descending=True)
            dropped = ordered.cumsum(-1) - ordered >= self.top_p
            probabilities = probabilities.masked_fill(dropped.scatter(-1, order, dropped), 0.0)
            probabilities = probabilities / probabilities.sum(-1, keepdim=True)
        return probabilities
