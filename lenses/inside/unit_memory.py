"""A simple recurrent unit at one token, and its memory: the weight of each token in its state.

With c_t = f_t ⊙ c_{t−1} + (1 − f_t) ⊙ W x_t (Kim et al. 2019, section 3.1), the weight of W x_j in c_t is
(1 − f_j) ⊙ Π f_s over the tokens s after j up to t: what was let in of it, and was kept since. It is no
attention: no query chooses, and the weights of a row sum to at most 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from lenses.inside.inside import as_array, as_double, difference
from transformer.model.network import Network
from transformer.model.sites import Sublayer
from transformer.model.ssru import Ssru
from transformer.runs.translation import Translation
from transformer.trace.audit import OUTPUT_LIMIT, merged
from transformer.trace.report import ROW_SUM_LIMIT, AuditReport, Check
from transformer.trace.view import Array, read_only


@dataclass(frozen=True, eq=False)
class UnitStep:
    """A layer's unit at one token; each array is (d_model,)."""

    read: Array  # x_t
    forget: Array  # f_t, from 0 to 1
    kept: Array  # f_t ⊙ c_{t−1}
    entering: Array  # (1 − f_t) ⊙ W x_t
    state: Array  # c_t, their sum
    update: Array  # max(0, c_t), as the model recorded it
    audit: AuditReport  # whether the unit's own output follows from its input at every token


@dataclass(frozen=True, eq=False)
class UnitMemory:
    """The weight of each token in the state of a layer's unit."""

    tokens: tuple[str, ...]  # what the rows read; the columns are the same tokens
    # (rows, tokens) (1 − f_j) Π f, from 0 to 1, as the mean over dimensions or of one; 0 for later tokens
    share: Array
    audit: AuditReport  # whether the unit's own output follows from the same gates


@dataclass(frozen=True, eq=False)
class _Pass:
    read: np.ndarray  # this and the following: (length, d_model)
    forget: np.ndarray
    entering: np.ndarray
    states: np.ndarray
    update: np.ndarray
    check: Check


def _passed(model: Network, translation: Translation, layer: int) -> _Pass:
    unit = getattr(model.layer("decoder", layer), "recurrence", None)
    if not isinstance(unit, Ssru):
        raise ValueError(f"Layer {layer + 1} of the decoder has no recurrent unit.")
    trace = translation.stream(Sublayer("decoder", layer, "recurrence"))
    read, weight, matrix = (as_double(each) for each in (trace.read, unit.forget.weight, unit.input.weight))
    forget = 1 / (1 + np.exp(-(read @ weight.T + as_double(unit.forget.bias))))
    entering, states = (1 - forget) * (read @ matrix.T), np.zeros_like(forget)
    for row in range(len(forget)):
        states[row] = entering[row] + (forget[row] * states[row - 1] if row else 0)
    apart = difference(np.maximum(states, 0), as_array(trace.update))
    check = Check("output of the unit", apart, OUTPUT_LIMIT[torch.float32])
    return _Pass(read, forget, entering, states, as_array(trace.update), check)


def unit_step(
    model: Network,
    translation: Translation,  # made with ``capture=Capture(residual=True)``
    layer: int,  # from 0
    position: int,  # from 0
) -> UnitStep:
    """One layer's unit at one token; NotCapturedError if unrecorded, ValueError if there is no such unit."""
    run = _passed(model, translation, layer)
    kept = run.forget[position] * (run.states[position - 1] if position else 0.0)
    rows = (each[position] for each in (run.read, run.forget, run.entering, run.states, run.update))
    read, forget, entering, state, update = (read_only(torch.tensor(row)) for row in rows)
    return UnitStep(read, forget, read_only(torch.tensor(kept)), entering, state, update, merged([run.check]))


def unit_memory(
    model: Network,
    translation: Translation,  # made with ``capture=Capture(residual=True)``
    layer: int,  # from 0
    dimension: int | None = None,  # one dimension of the state, from 0; None for the mean over all
) -> UnitMemory:
    """The memory of one layer's unit after each token; errors as for ``unit_step``."""
    run = _passed(model, translation, layer)
    rows, parts = [], np.zeros_like(run.forget)
    for row, kept in enumerate(run.forget):
        parts = parts * kept
        parts[row] = 1 - kept
        rows.append(parts.mean(1) if dimension is None else parts[:, dimension])
    share = np.stack(rows)
    most = Check("row sums at most 1", max(0.0, float(share.sum(1).max()) - 1), ROW_SUM_LIMIT)
    tokens = translation.decoder_input_tokens
    return UnitMemory(tokens, read_only(torch.from_numpy(share)), merged([run.check, most]))
