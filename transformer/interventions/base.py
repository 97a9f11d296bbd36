"""The request that every intervention is checked against first, and one sentence for each mistake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from transformer.config import AttentionKind, ModelConfig, Side, Site, Sublayer, SublayerName

Token = int | str
"""A token by its id, or by its piece, such as "▁ist"."""

SITES = {
    AttentionKind.ENCODER: "encoder self-attention",
    AttentionKind.DECODER: "decoder self-attention",
    AttentionKind.CROSS: "cross-attention",
}
PARTS: dict[SublayerName, str] = {
    "self_attention": "self-attention",
    "cross_attention": "cross-attention",
    "feed_forward": "feed-forward network",
}


class InterventionError(ValueError):
    """A change that cannot be made; the message says why in one sentence, and counts from 1."""


def within(
    at: int,  # a position, from 0
    count: int,  # how many there are
    what: str,  # "step": what is counted
    where: str,  # " of cross-attention": where it is counted
    there: str,  # "a layer has 8": how many there are, in words
) -> None:
    """Raises InterventionError if there is no such position."""
    if at >= count:
        raise InterventionError(f"There is no {what} {at + 1}{where}: {there}, counted from 1.")


@dataclass(frozen=True)
class Setting:
    """The request that a change is checked against."""

    config: ModelConfig  # the model's config
    typed: int  # number of source tokens as typed, ``</s>`` included
    source: int  # number of source tokens as the model reads them
    target: int  # most tokens of the output
    given: int | None = None  # number of tokens of the output in a forced pass; None while decoding
    # whether another change lifts a cell (query, key) of the decoder's causal mask
    lifted: Callable[[int, int], bool] = field(default=lambda query, key: False, repr=False)

    @property
    def forced(self) -> bool:
        """True if the output is given, so that nothing is decoded."""
        return self.given is not None

    def whole(self, side: Side) -> int | None:
        """Number of positions of a side; None if it is not known before the output is."""
        return self.source if side == "encoder" else self.given

    def lengths(self, kind: AttentionKind) -> tuple[int, int]:
        """Most queries and keys of an attention."""
        site = self.config.sites[kind]
        return self.length(site.query_side), self.length(site.key_side)

    def length(self, side: Side) -> int:
        """Most tokens of a side."""
        return self.source if side == "encoder" else self.target

    def site(self, kind: AttentionKind, layer: int) -> Site:
        """An attention of the model; InterventionError if the model has no such attention or layer."""
        site = self.config.sites.get(kind)
        if site is None:
            raise InterventionError(f"This model has no {SITES[kind]}.")
        within(layer, site.n_layers, "layer", f" of {SITES[kind]}", f"this model has {site.n_layers}")
        return site

    def check_side(self, side: Side) -> None:
        """Raises InterventionError if the model has no such side."""
        if side not in self.config.stacks:
            raise InterventionError(f"This model has no {side}.")

    def check_step(self, step: int) -> None:
        """Raises InterventionError if the output has no such step."""
        what = "has" if self.forced else "is limited to"
        within(step, self.target, "step", "", f"the output {what} {self.target:,} tokens")

    def check_sublayer(self, sublayer: Sublayer) -> None:
        """Raises InterventionError if the model has no such sub-layer."""
        stack = self.config.stacks.get(sublayer.side)
        if stack is None or sublayer.name not in stack.sublayers:
            raise InterventionError(f"A layer of the {sublayer.side} has no {PARTS[sublayer.name]}.")
        if sublayer.layer >= stack.n_layers:
            raise InterventionError(
                f"The {sublayer.side} has no layer {sublayer.layer + 1}: it has {stack.n_layers}, "
                "counted from 1."
            )
