"""Gradients by finite differences: the model runs with one token's embedding a little longer, and shorter."""

from __future__ import annotations

import numpy as np
import torch

from lenses.again.cells import Numbers, compared, equal
from lenses.measures.gradients import Saliency, logit_differences
from lenses.measures.stream import recorded
from transformer.model.sites import Side
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator
from transformer.trace.report import AuditReport

LIMIT, EXACT = 1e-1, 1e-4
"""Share of the largest number by which a finite difference and a sum may miss."""
NEAREST = 0.05
"""Share of the line before which no difference is taken: LayerNorm magnifies what is near zero."""
_BY = (0.0, 3e-4, -3e-4, 3e-3, -3e-3)
"""How much longer an embedding is, as shares of what it is: small ones drown in rounding, large ones pass a
corner of ReLU, on one side or on both."""
Place = tuple[int, Side, int]
"""Point of the line, side and token."""


def audit_saliency(
    translator: Translator,
    run: Translation,
    step: int,  # the step, from 0
    tokens: tuple[int, int | None],  # the token, and the one whose logit is subtracted
    found: Saliency,  # as it is drawn
    count: int | None = 1,  # gradients to compute again; None for all
) -> AuditReport:
    """Whether contributions are drawn at their tokens: the sum along the line, and some of its gradients."""
    drawn, line = np.concatenate([found.source, found.prefix]), np.concatenate(found.along, 1)
    summed = equal("gradients, summed along the line", drawn, found.weights @ line, EXACT)
    sides: tuple[Side, Side] = ("encoder", "decoder")
    places: list[Place] = []
    values: list[float] = []
    for side, along in zip(sides, found.along, strict=True):
        for point, at in np.ndindex(along.shape):
            if found.shares[point] >= NEAREST:
                places.append((point, side, at))
                values.append(float(along[point, at]))

    def again(cells: list[Place]) -> list[float]:
        own = {side: recorded(run).embeddings[side].tokens for side in sides}
        own["decoder"] = own["decoder"][: step + 1]
        longer = [(place, 1 + by) for place in cells for by in _BY]
        shares = torch.tensor([float(found.shares[point]) for (point, *_), _ in longer])
        leaves = {side: shares[:, None, None] * each for side, each in own.items()}
        for row, ((_, side, at), factor) in enumerate(longer):
            leaves[side][row, at] *= factor
        ends = logit_differences(translator, run, step, tokens, leaves, found.held).double().numpy()
        return [
            _nearest(end, float(found.shares[point]), float(found.along[sides.index(side)][point, at]))
            for end, (point, side, at) in zip(ends.reshape(-1, len(_BY)), cells, strict=True)
        ]

    claim = "from a {{}} trace, {count} of {all} gradients computed again"
    return summed.joined(
        compared("gradients", places, values, again, recorded(run).hash, LIMIT, count, claim)
    )


def _nearest(ends: Numbers, share: float, drawn: float) -> float:
    """The slope nearest to a number, of those before, after and across the middle."""
    middle, *rest = ends
    slopes = []
    for by, up, down in zip(_BY[1::2], rest[::2], rest[1::2], strict=True):
        slopes += [(up - down) / (2 * by), (up - middle) / by, (middle - down) / by]
    return float(min((slope / share for slope in slopes), key=lambda slope: abs(slope - drawn)))
