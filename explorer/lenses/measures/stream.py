"""Who wrote a residual stream: its parts, and what a direction of its end is at every place before it.

Every LayerNorm on the way divides by the σ that it had in the run, held fixed; with that, each is a linear
map plus β, so that the parts of a stream sum to it exactly (Elhage et al. 2021; Ferrando et al. 2022, 3.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from explorer.lenses.inside.parts import embedding_trace
from explorer.lenses.inside.weights import exact, output_rows
from transformer.config import AttentionKind, RecurrentConfig, Side, Sublayer
from transformer.layers import StreamNorm, shift, spread
from transformer.model import Network
from transformer.run import NotCapturedError, Translation
from transformer.trace import AttentionTrace, ResidualTrace

TOKEN, POSITION, BIASES = "token", "position", "biases"


Tell = Callable[[float], object]
"""Hears what share of a measurement is done; it may raise, to end it."""


def silent(share: float) -> None:
    """Tells nobody."""


class UnmeasuredError(ValueError):
    """A measure is not defined for a run or a model; the message says why in one sentence."""


def transformer_run(run: Translation) -> None:
    """Refuses the run of a recurrent model; UnmeasuredError if the model is no Transformer."""
    if isinstance(run.config, RecurrentConfig):
        reason = "a recurrent model has no sub-layers that write to a stream"
        raise UnmeasuredError(f"This measure needs a Transformer: {reason}.")


def recorded(run: Translation) -> AttentionTrace:
    """The trace of a run; NotCapturedError if absent, UnmeasuredError if changed or no Transformer's."""
    transformer_run(run)
    if run.attention is None:
        raise NotCapturedError("Attention was not recorded; translate with capture=Capture(residual=True).")
    if run.interventions:
        raise UnmeasuredError("This measure takes a run without changes: remove them first.")
    return run.attention


class Writer(NamedTuple):
    """Something that wrote to a stream."""

    what: str  # `token`, `position`, `biases` (with every LayerNorm's β), or the name of a sub-layer
    layer: int | None = None  # its layer, from 0
    head: int | None = None  # its head, from 0, if it is one

    def __str__(self) -> str:
        where = "" if self.layer is None else f" L{self.layer + 1}"
        return f"{self.what.replace('_', '-')}{where}{'' if self.head is None else f' H{self.head + 1}'}"


@dataclass(frozen=True, eq=False)
class FixedNorm:
    """A norm with the σ of a run: linear, but for β. RMSNorm takes no mean, and has no β."""

    gain: Tensor  # γ (d_model,)
    shift: Tensor  # β (d_model,)
    spread: Tensor  # √(σ² + ε) (length, 1)
    centres: bool = True  # whether it takes the mean

    @classmethod
    def of(cls, norm: nn.Module, entered: Tensor) -> FixedNorm:
        """The norm for what entered it (length, d_model)."""
        assert isinstance(norm, StreamNorm)
        divisor = spread(norm, entered.double())
        return cls(exact(norm.weight), exact(shift(norm)), divisor, not isinstance(norm, nn.RMSNorm))

    def centred(self, part: Tensor) -> Tensor:
        """(…, d_model) without its mean, if the norm takes it."""
        return part - part.mean(-1, keepdim=True) if self.centres else part

    def __call__(self, part: Tensor) -> Tensor:
        """(…, length, d_model): a part of what entered, as a part of what leaves."""
        return self.gain * self.centred(part) / self.spread

    def pulled(self, directions: Tensor, places: list[int]) -> Tensor:
        """(n, d_model) directions after the norm, as those before it that read the same number."""
        return self.centred(self.gain * directions) / self.spread[places]


class SublayerUpdate(NamedTuple):
    """A sub-layer of a run, as far as a stream is concerned."""

    sublayer: Sublayer
    kind: AttentionKind | None  # its attention; None if it is none
    record: ResidualTrace
    norm: FixedNorm | None  # the norm after its sum; None with pre-norm


def written(model: Network, run: Translation, side: Side) -> tuple[SublayerUpdate, ...]:
    """The sub-layers of a stack in their order; errors as for ``recorded``."""
    recorded(run)
    kinds = {(site.query_side, site.name): kind for kind, site in model.config.sites.items()}
    found = []
    for sublayer in model.config.stacks[side].passed():
        record, residual = run.stream(sublayer), model.residual(sublayer)
        after = not residual.pre_norm
        norm = FixedNorm.of(residual.norm, record.before + record.output) if after else None
        found.append(SublayerUpdate(sublayer, kinds.get((side, sublayer.name)), record, norm))
    return tuple(found)


def first_norm(run: Translation, side: Side) -> FixedNorm | None:
    """The norm of the embeddings; None without one."""
    embedded = embedding_trace(run, side)
    return None if embedded.norm is None else FixedNorm.of(embedded.norm, embedded.sum)


def final_norm(model: Network, run: Translation, side: Side) -> FixedNorm | None:
    """The norm at the end of a pre-norm stack; None with post-norm."""
    norm = model.stack(side).final_norm
    last = run.stream(model.config.stacks[side].ends()[-1]).stream
    return FixedNorm.of(norm, last) if isinstance(norm, StreamNorm) else None


def values_written(model: Network, run: Translation, kind: AttentionKind, layer: int) -> Tensor:
    """(heads, keys, d_model) v W_O of every key, float64: what a key would write with a weight of 1."""
    rows, _ = output_rows(model, kind, layer)
    return recorded(run).layer(kind, layer).value.double() @ rows


def parts(
    model: Network, run: Translation, side: Side, reader: Sublayer | None = None
) -> tuple[tuple[Writer, ...], Tensor]:
    """The writers of what a sub-layer reads, or, without one, of what leaves the stack; and their parts.

    The parts, (writers, length, d_model) float64, sum to what is read.
    """
    embedded = embedding_trace(run, side)
    names = [Writer(BIASES), Writer(TOKEN)]
    found = [torch.zeros_like(embedded.tokens).double(), embedded.tokens.double()]
    if embedded.positions is not None:
        names.append(Writer(POSITION))
        found.append(embedded.positions.double())
    stacked, norm = torch.stack(found), first_norm(run, side)
    if norm is not None:
        stacked = norm(stacked)
        stacked[0] += norm.shift
    norm = None
    for each in written(model, run, side):
        if each.sublayer == reader:
            residual = model.residual(each.sublayer)
            norm = None if each.norm is not None else FixedNorm.of(residual.norm, each.record.before)
            break
        names_new, new, bias = _update(model, run, each)
        stacked, names = torch.cat([stacked, new]), [*names, *names_new]
        stacked[0] += bias
        if each.norm is not None:
            stacked = each.norm(stacked)
            stacked[0] += each.norm.shift
    else:
        norm = final_norm(model, run, side)
    if norm is not None:
        stacked = norm(stacked)
        stacked[0] += norm.shift
    return tuple(names), stacked


def _update(model: Network, run: Translation, each: SublayerUpdate) -> tuple[list[Writer], Tensor, Tensor]:
    """The update of a sub-layer: by head, and its bias; or as a whole."""
    name, layer, update = each.sublayer.name, each.sublayer.layer, each.record.output.double()
    if each.kind is None:
        return [Writer(name, layer)], update[None], torch.zeros_like(update)
    rows, bias = output_rows(model, each.kind, layer)
    new = recorded(run).layer(each.kind, layer).output.double() @ rows
    return [Writer(name, layer, head) for head in range(len(new))], new, bias.expand_as(update)
