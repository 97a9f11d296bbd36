"""Direct logit attribution: a logit, or the difference of two, as a sum over what wrote the decoder's stream.

z_A − z_B = Σ_w part_w · (W_A − W_B) + biases (Elhage et al. 2021, "logit attribution"), with the σ of every
LayerNorm held fixed. It says the direct path only, nothing of what later layers make of what a writer wrote.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.lenses.inside.weights import exact
from explorer.lenses.measures.direct import direct, without_biases
from explorer.lenses.measures.stream import Writer, recorded
from transformer.config import AttentionKind
from transformer.model import Network
from transformer.run import Translation
from transformer.view import Array, AuditReport, Check, read_only

_SUMS = "The parts sum to the logits that the model computed: that proves their total, not who wrote which."
LIMIT = 1e-4
"""Share of the largest part by which the parts may miss the logit."""


@dataclass(frozen=True, eq=False)
class Attribution:
    """Parts that writers add to a logit or to a difference of logits; in nats."""

    total: float  # the logit, or the difference, as the model computes it
    writers: tuple[Writer, ...]
    values: Array  # (writers,) float32; they sum to the total
    # by kind, (layers, heads, keys): the values of the heads, split over the keys that they read
    keys: dict[AttentionKind, Array]
    audit: AuditReport  # whether the parts sum to the total

    @property
    def heads(self) -> dict[AttentionKind, Array]:
        """By kind, (layers, heads)."""
        return {kind: split.sum(-1) for kind, split in self.keys.items()}


def attribution(
    model: Network,
    run: Translation,  # made with ``capture=Capture(residual=True)``, without changes
    step: int,  # the row of the decoder, from 0
    token: int,  # id of the token whose logit is split
    against: int | None = None,  # id of the token whose logit is subtracted; None for none
) -> Attribution:
    """Splits the logit of a token at a step, or the difference of two, over what wrote the decoder's stream.

    z_A − z_B = Σ_w part_w · (W_A − W_B) + biases, with the σ of every LayerNorm held fixed (Elhage et al.
    2021). The direct path only: what a later layer makes of a writer counts for the later layer.

    Returns:
        Parts in nats (writers,), and those of heads by key (layers, heads, keys); they sum to the logit.

    Raises:
        NotCapturedError: The residual stream was not recorded.
        UnmeasuredError: The model is no Transformer, or something was changed in the run.
        IndexError: There is no such step or token.
    """
    recorded(run)
    direction, total = asked(model, run, step, token, against)
    found = direct(model, run, "decoder", direction[None], [step])
    numbers = [float(each) for each in found.values]
    numbers[0] += _bias(model, token, against)
    keys: dict[AttentionKind, list[Tensor]] = {}
    for (kind, _), split in reversed(found.keys.items()):
        keys.setdefault(kind, []).append(split[:, 0])
    largest = max(1.0, *map(abs, numbers))
    check = Check("parts sum to the logit", abs(sum(numbers) - total) / largest, LIMIT)
    return Attribution(
        total,
        tuple(found.writers),
        read_only(torch.tensor(numbers, dtype=torch.float32)),
        {kind: read_only(torch.stack(split).float()) for kind, split in keys.items()},
        AuditReport((check,), told=(_SUMS,), claim="sums up"),
    )


def by_source(model: Network, run: Translation, step: int, token: int, against: int | None = None) -> Array:
    """What all heads of cross-attention add to a logit through each source token; arguments as `attribution`.

    On the direct path, without b_V, which every query gets whatever it reads (Elhage et al. 2021).

    Returns:
        (source,) parts in nats.

    Raises:
        NotCapturedError: The residual stream was not recorded.
        UnmeasuredError: The model is no Transformer, or something was changed in the run.
        IndexError: There is no such step or token.
    """
    recorded(run)
    direction, _ = asked(model, run, step, token, against)
    split = without_biases(model, run, direct(model, run, "decoder", direction[None], [step]), [step])
    heads = [parts[:, 0].sum(0) for (kind, _), parts in split.items() if kind is AttentionKind.CROSS]
    return read_only(torch.stack(heads).sum(0).float())


def asked(
    model: Network, run: Translation, step: int, token: int, against: int | None
) -> tuple[Tensor, float]:
    """The direction of the output matrix (d_model,), float64, and the logit as the model computes it."""
    weight, _ = model.projection
    asked = [token] if against is None else [token, against]
    if not all(0 <= each < len(weight) for each in asked):
        raise IndexError(f"There is no target token {max(asked)}; there are {len(weight):,}, from 0.")
    if not 0 <= step < len(run.steps):
        raise IndexError(f"There is no step {step}; this run has {len(run.steps)}, from 0.")
    last = run.stream(model.config.stacks["decoder"].ends()[-1]).stream[step]
    decoder = model.stack("decoder")
    with torch.inference_mode():
        stream = decoder.final_norm(last.to(device=weight.device, dtype=decoder.dtype))
        logits = model.logits(stream).double().cpu()
    rows = exact(weight[asked]) * model.config.output_scale
    if against is None:
        return rows[0], float(logits[token])
    return rows[0] - rows[1], float(logits[token] - logits[against])


def _bias(model: Network, token: int, against: int | None) -> float:
    _, bias = model.projection
    if bias is None:
        return 0.0
    return float(bias[token]) - (0.0 if against is None else float(bias[against]))
