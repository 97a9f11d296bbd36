"""One query of a head by every measure: weight, length of value, carried, and three effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lenses.again.carried import carried_again
from lenses.again.cells import equal
from lenses.again.effects import audit_effects
from lenses.again.plain import exactly, output_columns
from lenses.inside.weights import multi_head
from lenses.measures.effect import WAYS
from transformer.model.norms import shift
from transformer.model.sites import PlacedHead
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator
from transformer.trace.report import AuditReport
from transformer.trace.view import Array

LIMIT = 1e-4


def audit_row(
    translator: Translator,
    run: Translation,
    which: PlacedHead,
    row: int,  # the query, from 0
    step: int | None,  # as in ``effect``
    drawn: Sequence[Array],  # (keys + 1,) each: weight, length of value, carried, effects; the last is of b_V
) -> AuditReport:
    """Whether the numbers of a row are those of its keys."""
    kind, layer, head = which
    norms, lengths = carried_again(translator.model, run, which)
    bias = exactly(shift(multi_head(translator.model, kind, layer).v_proj))
    columns = output_columns(translator.model, kind, layer, head)
    always = float(np.linalg.norm(columns @ bias.reshape(run.config.n_heads, -1)[head]))
    weights = run.weights(kind, layer, head)[row]
    found = equal("weight", drawn[0], np.append(weights, np.nan), LIMIT)
    found = found.joined(equal("length of value", drawn[1], np.append(lengths, always), LIMIT))
    found = found.joined(equal("carried", drawn[2], np.append(norms[row], always), LIMIT))
    runs = sum(int(np.isfinite(each[:-1]).sum()) for each in drawn[3:])
    for way, each in zip(WAYS, drawn[3:], strict=True):
        found = found.joined(audit_effects(translator, run, which, each[None, :-1], way, step, (row, 0)))
    return replace(found, claim=f"from {runs} runs, {min(runs, len(WAYS))} made again") if runs else found
