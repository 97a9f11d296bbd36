"""The audit of what entered the stacks: the vectors of the tokens that were read, and their positions.

It ties the labels of a picture to its numbers: a token is the row of its id in the table, times the config's
scale (section 3.4), and its position is the one that the model's table or formula has there (section 3.5).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer import interventions as do
from transformer.model.config import ModelConfig
from transformer.model.encodings.positions import BASE, Learned
from transformer.model.encodings.table import ENCODINGS
from transformer.model.network import Network
from transformer.model.sites import Side
from transformer.trace.records import AttentionTrace
from transformer.trace.report import LABELS_UNMADE, PLACES_UNMADE, AuditReport, Check

TOKENS, POSITIONS = "tokens", "positions"
POSITIONS_UNMADE = "whether the positions are those of the model's table"


def audit_entered(
    trace: AttentionTrace,  # what was recorded
    basis: Network | ModelConfig | None,  # the model, or its config if there is no model
    limit: float,  # largest difference, as a share of the largest number
) -> AuditReport:
    """Compares token embeddings with table[id] × scale, and positions with their table or formula."""
    model = basis if isinstance(basis, Network) else None
    checks, unmade = [], [] if model is not None else [LABELS_UNMADE, PLACES_UNMADE]
    if model is not None and trace.tokens:
        checks = [Check(TOKENS, _worst([_tokens(trace, model, side) for side in trace.embeddings]), limit)]
    config = basis.config if isinstance(basis, Network) else basis
    if config is not None and ENCODINGS[config.positions].acts == "embeddings":
        found = [_positions(trace, basis, side) for side in trace.embeddings]
        known = [each for each in found if each is not None]
        unmade += [POSITIONS_UNMADE] if len(known) < len(found) else []
        checks += [Check(POSITIONS, _worst(known), limit)] if known else []
    return AuditReport(tuple(checks), unmade=tuple(unmade))


def _tokens(trace: AttentionTrace, model: Network, side: Side) -> float:
    """Largest difference between a side's token embeddings and the rows of its ids."""
    ids, table = torch.tensor(trace.tokens[side].ids), model.table(side).weight.detach()
    known = ids < len(table)
    rows = table[ids.where(known, 0).to(table.device)].double().cpu() * known[:, None]
    return _difference(trace.embeddings[side].tokens, rows * model.config.embedding_scale)


def _positions(trace: AttentionTrace, basis: Network | ModelConfig | None, side: Side) -> float | None:
    """The same of the positions; None if their table is not here."""
    config = basis.config if isinstance(basis, Network) else basis
    assert config is not None
    bare = any(isinstance(each, do.NoPositions) and each.side == side for each in trace.interventions)
    recorded = trace.embeddings[side].positions
    if bare or recorded is None:
        return 0.0 if bare and recorded is None else math.inf
    first = trace.tokens[side].first if trace.tokens else 0
    if config.positions == "sinusoidal":
        formula = torch.from_numpy(sinusoids(config, first, len(recorded)))
        # A file of 16 bits may hold the table, rounded.
        rounded = [formula, formula.bfloat16().double(), formula.half().double()]
        return min(_difference(recorded, each) for each in rounded)
    encoding = basis.stack(side).positions if isinstance(basis, Network) else None
    if not isinstance(encoding, Learned):
        return None
    return _difference(recorded, encoding.table[first : first + len(recorded)].detach().double().cpu())


def sinusoids(config: ModelConfig, first: int, length: int) -> NDArray[np.float64]:
    """(length, d_model) the formula of section 3.5, number by number, in the layout of the config."""
    width, first = config.d_model, first + config.first_position
    period = max(1, width - 2 * (config.sine_layout == "inclusive"))
    angles = np.arange(first, first + length)[:, None] / BASE ** (np.arange(0, width, 2) / period)
    sines, cosines = np.sin(angles), np.cos(angles[:, : width // 2])  # an odd width has one sine more
    if config.sine_layout != "interleaved":
        return np.concatenate((sines, cosines), 1)
    table = np.empty((length, width))
    table[:, 0::2], table[:, 1::2] = sines, cosines
    return table


def _difference(recorded: Tensor, expected: Tensor) -> float:
    if recorded.shape != expected.shape:
        return math.inf
    scale = max(1.0, float(expected.abs().max()))
    return float((recorded.double() - expected).abs().max()) / scale


def _worst(values: list[float]) -> float:
    return math.nan if any(value != value for value in values) else max(values, default=0.0)
