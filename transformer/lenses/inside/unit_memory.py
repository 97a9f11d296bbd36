"""The memory of a simple recurrent unit: how much of what each token put into the state is still in it.

With c_t = f_t ⊙ c_{t−1} + (1 − f_t) ⊙ W x_t (Kim et al. 2019, section 3.1), the part of token j in c_t is
(1 − f_j) ⊙ Π f_s over the tokens s after j up to t. It is no attention: no query chooses, and the parts of a
row sum to at most 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from transformer.lenses.inside.inside import as_array, as_double, difference
from transformer.model.network import Network
from transformer.model.sites import Sublayer
from transformer.model.ssru import Ssru
from transformer.runs.translation import Translation
from transformer.trace.audit import OUTPUT_LIMIT, merged
from transformer.trace.report import ROW_SUM_LIMIT, AuditReport, Check
from transformer.trace.view import Array, read_only


@dataclass(frozen=True, eq=False)
class UnitMemory:
    """The share of each token left in the state of a layer's unit."""

    tokens: tuple[str, ...]  # what the rows read; the columns are the same tokens
    share: Array  # (rows, tokens) from 0 to 1, as the mean over dimensions or of one; 0 for later tokens
    audit: AuditReport  # whether the unit's own output follows from the same gates


def unit_memory(
    model: Network,
    translation: Translation,  # made with ``capture=Capture(residual=True)``
    layer: int,  # from 0
    dimension: int | None = None,  # one dimension of the state, from 0; None for the mean over all
) -> UnitMemory:
    """The memory of one layer's unit after each token.

    Raises:
        NotCapturedError: The residual stream was not recorded.
        ValueError: The layer has no such unit.
    """
    unit = getattr(model.layer("decoder", layer), "recurrence", None)
    if not isinstance(unit, Ssru):
        raise ValueError(f"Layer {layer + 1} of the decoder has no recurrent unit.")
    trace = translation.stream(Sublayer("decoder", layer, "recurrence"))
    read, weight, entering = (as_double(each) for each in (trace.read, unit.forget.weight, unit.input.weight))
    forget = 1 / (1 + np.exp(-(read @ weight.T + as_double(unit.forget.bias))))
    rows, state = [], np.zeros_like(forget[0])
    parts, outputs = np.zeros_like(forget), []
    for row, (kept, new) in enumerate(zip(forget, read @ entering.T, strict=True)):
        parts = parts * kept
        parts[row] = 1 - kept
        state = kept * state + (1 - kept) * new
        rows.append(parts.mean(1) if dimension is None else parts[:, dimension])
        outputs.append(np.maximum(state, 0))
    share = np.stack(rows)
    apart = difference(np.stack(outputs), as_array(trace.update))
    checks = [
        Check("output of the unit", apart, OUTPUT_LIMIT[torch.float32]),
        Check("row sums at most 1", max(0.0, float(share.sum(1).max()) - 1), ROW_SUM_LIMIT),
    ]
    return UnitMemory(translation.decoder_input_tokens, read_only(torch.from_numpy(share)), merged(checks))
