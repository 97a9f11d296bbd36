"""Contrastive gradients: which source and prefix tokens a logit difference leans on (Yin and Neubig 2022).

Of z_A − z_B by the token embeddings. Gradient × input says what a small change would do; integrated
gradients (Sundararajan et al. 2017) follow the line from embeddings of zeros, and their sum is the
difference between its ends, which is audited ("completeness").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from explorer.lenses.inside.parts import embedding_trace
from explorer.lenses.measures.stream import Tell, UnmeasuredError, recorded, silent
from transformer.config import ModelConfig, Side
from transformer.hooks import At, Hooks
from transformer.model import Transformer
from transformer.run import Translation
from transformer.translator import Translator
from transformer.view import Array, AuditReport, Check, read_only

POINTS = 256
"""Points of the line at which gradients are taken, by Gauss and Legendre in the third root of its length:
near zero, where LayerNorm magnifies everything, they lie closest."""
MOST_TOKENS = 1024
"""Tokens of a pass: points × the longer of source and prefix."""
LIMIT = 0.05
"""Share of the largest of the two ends by which the sum may miss their difference."""


NO_LINE = (
    "Integrated gradients begin at embeddings of zeros. There, every RMSNorm magnifies what it reads up to "
    "1/√ε times, layer by layer, so that the logits jump where no points can follow: use gradient × input."
)


def integrates(config: ModelConfig) -> bool:
    """Whether gradients can be summed along the line from zeros: LayerNorm's β leaves something there."""
    return config.norm_by != "rms"


@dataclass(frozen=True, eq=False)
class Saliency:
    """Contributions of tokens to a difference of logits, by gradients; in nats."""

    source: Array  # (source,)
    prefix: Array  # (step + 1,) the decoder's input up to the step, with the start token
    total: float  # z_A − z_B, or z_A, in the run
    audit: AuditReport  # completeness; without checks for gradient × input, which promises no sum
    # (points, source) and (points, step + 1): gradient · embedding at points of the line, which stand at
    # ``shares`` (points,) of the embeddings, and which ``weights`` (points,) sum to ``source`` and ``prefix``
    along: tuple[Array, Array]
    shares: Array
    weights: Array


def saliency(
    translator: Translator,
    run: Translation,  # without changes
    step: int,  # the step, from 0
    token: int,  # id of the token
    against: int | None = None,  # id of the token whose logit is subtracted; None for none
    integrated: bool = True,  # integrated gradients; otherwise gradient × input
    tell: Tell = silent,  # hears what share is done
) -> Saliency:
    """Contributions of source and prefix to a logit difference, by gradients of the token embeddings.

    Contrastive if a second token is given (Yin and Neubig 2022); integrated gradients run from embeddings of
    zeros (Sundararajan et al. 2017).

    Returns:
        (source,) and (step + 1,) contributions in nats.

    Raises:
        NotCapturedError: Attention was not recorded.
        UnmeasuredError: The model is no Transformer, or something was changed in the run; or gradients are
            integrated through RMSNorm.
        IndexError: There is no such step.
    """
    recorded(run)
    if integrated and not integrates(run.config):
        raise UnmeasuredError(NO_LINE)
    model = translator.model
    assert isinstance(model, Transformer)
    if not 0 <= step < len(run.steps):
        raise IndexError(f"There is no step {step}; this run has {len(run.steps)}, from 0.")
    ids = [*translator.ids(run.source_text), translator.config.eos_id]
    read = [translator.config.bos_id, *run.target_ids[:step]]
    own: dict[Side, Tensor] = {
        "encoder": embedding_trace(run, "encoder").tokens,
        "decoder": embedding_trace(run, "decoder").tokens[: step + 1],
    }
    rows = torch.tensor([ids], device=translator.device), torch.tensor([read], device=translator.device)
    logits = _Logits(model, own, rows, token, against)
    shares, weights = _line() if integrated else _ONE
    along = logits.gradients(shares, tell)
    source, prefix = (weights @ each for each in along)
    with torch.no_grad():
        ends = [float(logits.of(logits.leaves(torch.tensor([share])))[0]) for share in (0.0, 1.0)]
    checks: tuple[Check, ...] = ()
    if integrated:
        missed = abs(float(source.sum() + prefix.sum()) - (ends[1] - ends[0]))
        checks = (Check("completeness", missed / max(1.0, *map(abs, ends)), LIMIT),)
    audit = AuditReport(checks, told=(_COMPLETE,), claim="sums up") if checks else AuditReport(())
    first, second, at, by = map(read_only, (*along, shares, weights))
    return Saliency(read_only(source), read_only(prefix), ends[1], audit, (first, second), at, by)


_ONE = torch.ones(1), torch.ones(1)
"""The end of the line alone: gradient × input."""
_COMPLETE = "The gradients sum to the change of the logits from embeddings of zeros: a total, not its parts."


def _line() -> tuple[Tensor, Tensor]:
    """Shares of the embeddings, and the weights of their gradients in the integral."""
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    root = (nodes + 1) / 2
    shares, weights = root**3, weights / 2 * 3 * root**2
    return torch.tensor(shares, dtype=torch.float32), torch.tensor(weights, dtype=torch.float32)


def _put(leaf: Tensor, own: Tensor, at: At) -> Tensor:
    """Embeddings in the place of the tokens' own."""
    return leaf


@dataclass(frozen=True, eq=False)
class _Logits:
    """z_A − z_B of the last row, or z_A, as a function of the token embeddings."""

    model: Transformer
    embeddings: dict[Side, Tensor]  # (length, d_model), the model's own
    rows: tuple[Tensor, Tensor]  # ids of source and prefix
    token: int
    against: int | None

    def leaves(self, shares: Tensor) -> dict[Side, Tensor]:
        """(points, length, d_model) shares of the embeddings, on the model's device."""
        device = self.rows[0].device
        return {side: (shares[:, None, None] * each).to(device) for side, each in self.embeddings.items()}

    def of(self, leaves: dict[Side, Tensor]) -> Tensor:
        """(points,) differences of logits."""
        count = len(leaves["encoder"])
        hooks = Hooks((), {f"{side}.tokens": [partial(_put, leaf)] for side, leaf in leaves.items()})
        memory = self.model.encode(self.rows[0].expand(count, -1), hooks=hooks)
        features = self.model.decode(self.rows[1].expand(count, -1), memory, hooks=hooks)[:, -1]
        logits = self.model.logits(features).float()
        return logits[:, self.token] - (0 if self.against is None else logits[:, self.against])

    def gradients(self, shares: Tensor, tell: Tell) -> list[Tensor]:
        """Gradient · embedding at every point and token of each side, (points, length)."""
        parts: list[list[Tensor]] = [[] for _ in self.embeddings]
        size = max(1, MOST_TOKENS // max(len(each) for each in self.embeddings.values()))
        for some in torch.split(shares, size):
            leaves = {side: each.requires_grad_() for side, each in self.leaves(some).items()}
            with torch.enable_grad():
                found = torch.autograd.grad(self.of(leaves).sum(), list(leaves.values()))
            tell(float(some[-1]) ** (1 / 3))
            for part, each, tokens in zip(parts, found, self.embeddings.values(), strict=True):
                part.append((each.cpu() * tokens).sum(-1))
        return [torch.cat(each) for each in parts]
