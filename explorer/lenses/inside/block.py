"""One layer as a chain: the residual stream at one token before, between and after its sub-layers."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from explorer.lenses.inside.inside import as_array, difference, worst
from explorer.lenses.inside.parts import addition_check
from transformer.audit import OUTPUT_LIMIT, merged
from transformer.config import Side, SublayerName
from transformer.model import Network
from transformer.run import Translation
from transformer.view import Array, AuditReport, Check, read_only


@dataclass(frozen=True, eq=False)
class Block:
    """One layer at one token."""

    names: tuple[SublayerName, ...]  # the sub-layers, in the order in which the stream passes them
    # (d_model,) arrays, one more than sub-layers: the stream before the first, and after each
    points: tuple[Array, ...]
    audit: AuditReport  # checks that each point follows from the one before


def open_block(model: Network, translation: Translation, side: Side, layer: int, position: int) -> Block:
    """Opens one layer (from 0) of a stack at one token (from 0); NotCapturedError if not recorded."""
    names = model.config.stacks[side].sublayers
    stack = [model.config.stacks[side].sublayer(layer, name) for name in names]
    traces = [translation.stream(sublayer) for sublayer in stack]
    arrives = [read_only(trace.before[position]) for trace in traces]
    leaves = [read_only(trace.stream[position]) for trace in traces]
    checks = [
        check
        for sublayer, trace in zip(stack, traces, strict=True)
        for check in addition_check(
            model, translation, sublayer, position, as_array(trace.before[position] + trace.output[position])
        )
    ]
    joints = [difference(a, b) for a, b in zip(arrives[1:], leaves[:-1], strict=True)]
    checks.append(Check("joints of the block", worst(joints), OUTPUT_LIMIT[torch.float32]))
    return Block(names, (arrives[0], *leaves), merged(checks))
