"""The memory of a recurrent unit in closed form: logarithms of the gates are added up, nothing is stepped."""

from __future__ import annotations

import numpy as np

from lenses.again.cells import equal
from lenses.again.plain import exactly
from transformer.model.network import Network
from transformer.model.sites import Sublayer
from transformer.runs.translation import Translation
from transformer.trace.report import AuditReport
from transformer.trace.view import Array, Window

LIMIT = 1e-5


def audit_memory(
    model: Network,
    run: Translation,
    layer: int,  # from 0
    dimension: int | None,  # from 0; None for the mean
    drawn: Array,  # (rows, tokens) as a figure receives it
    window: Window,  # the part of the whole that it is
) -> AuditReport:
    """Whether (1 − f_j) Π f is drawn at its row and token; every cell is computed again."""
    unit = getattr(model.layer("decoder", layer), "recurrence")  # noqa: B009
    read = exactly(run.stream(Sublayer("decoder", layer, "recurrence")).read)
    gate = read @ exactly(unit.forget.weight).T + exactly(unit.forget.bias)
    kept, entered = -np.logaddexp(0, -gate), -np.logaddexp(0, gate)  # log f, log (1 − f)
    so_far = np.cumsum(kept, 0)
    share = np.exp(so_far[:, None] - so_far[None] + entered[None])
    share = share.mean(-1) if dimension is None else share[..., dimension]
    return equal("memory", drawn, np.tril(share)[window.queries, window.keys], LIMIT)
