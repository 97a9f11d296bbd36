"""From one token back to the words it came from: a logit as sums, from place to place, through both stacks.

The logit is a sum over what wrote the decoder's last stream; a head of it is a sum over the keys that it
read, source positions or target prefix; what a source position holds is a sum over what wrote the encoder's
stream there, and a head of that over the source words that it read (Elhage et al. 2021, "path expansion").
All of it is exact once attention patterns and the σ of every norm are held fixed. How a pattern came about is
no part of it; a feed-forward network is not linear in what it read: what it wrote is an end, as are biases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lenses.measures.attribution import Attribution, asked, attribution
from lenses.measures.direct import Read, direct, read_through, without_biases
from lenses.measures.stream import BIASES, TOKEN, UnmeasuredError, Writer, recorded
from transformer.model.network import Network
from transformer.model.sites import AttentionKind
from transformer.runs.translation import Translation
from transformer.trace.report import AuditReport, Check
from transformer.trace.view import Array, read_only

LIMIT = 1e-4
"""Share of the largest part by which the sums at a place may miss what stands there."""
_TRIED = 24
"""Reads of a source position by a head that are followed to the words, the largest first."""
_SUMS = "At every place, what is read sums to what was read: that proves the totals, not who wrote which."


@dataclass(frozen=True)
class Way:
    """One way from the logit to where it ends, with its own part of the logit."""

    value: float  # nats
    head: Writer  # the head of the decoder
    position: int  # the source position that it read; for self-attention the position of the prefix
    writer: Writer | None = None  # who wrote there in the encoder; None at the prefix, where the way ends
    word: int | None = None  # the source position that this writer read; None if it read no other


@dataclass(frozen=True, eq=False)
class WayBack:
    """A logit, or the difference of two, from place to place; every array in nats."""

    logit: Attribution  # by what wrote the decoder's stream at the step
    source: Array  # (layers, heads, source) by head of cross-attention and source position
    prefix: Array  # (layers, heads, step + 1) by head of self-attention and position of the prefix
    writers: tuple[Writer, ...]  # who wrote the encoder's streams
    # (writers, source) by who wrote, for each source position; a column sums to that of `source`
    encoder: Array
    # (layers, heads, source, source) by head of the encoder, where it wrote, and the word it read
    words: Array
    ways: tuple[Way, ...]  # the largest ones through heads
    audit: AuditReport  # whether the sums meet at every place


def way_back(
    model: Network,
    run: Translation,  # made with ``capture=Capture(residual=True)``, without changes
    step: int,  # the row of the decoder, from 0
    token: int,  # id of the token whose logit is split
    against: int | None = None,  # id of the token whose logit is subtracted; None for none
) -> WayBack:
    """Follows a logit back through the decoder, the encoder's output and the encoder.

    Parts are of the direct paths: what a later layer makes of a writer counts for the later layer.

    Returns:
        The parts of every place in nats, with their audit; Elhage et al. 2021, "path expansion".

    Raises:
        NotCapturedError: The residual stream was not recorded.
        UnmeasuredError: There is no attention in both stacks, or something was changed in the run.
        IndexError: There is no such step or token.
    """
    recorded(run)
    if set(run.config.sites) != set(AttentionKind):
        raise UnmeasuredError("The way back needs an encoder and a decoder with self-attention.")
    logit = attribution(model, run, step, token, against)
    direction, _ = asked(model, run, step, token, against)
    decoder = direct(model, run, "decoder", direction[None], [step])
    reads = without_biases(model, run, decoder, [step])
    cross, length = AttentionKind.CROSS, len(run.source_tokens)
    source = _stacked(reads, cross)[:, :, 0]
    # What each head asks of the encoder's output at a position, but for its weight there.
    asks = torch.stack(
        [
            read_through(model, cross, layer, decoder.pulled[cross, layer])[:, 0]
            for layer in range(len(source))
        ]
    )
    weights = torch.stack(
        [
            torch.as_tensor(recorded(run).weights(cross, layer)[:, step]).double()
            for layer in range(len(source))
        ]
    )
    places = [*range(length)]
    encoder = direct(model, run, "encoder", torch.einsum("lhj,lhd->jd", weights, asks), places)
    words = _stacked(without_biases(model, run, encoder, places), AttentionKind.ENCODER)
    parts, prefix = torch.stack(encoder.values), _stacked(reads, AttentionKind.DECODER)[:, :, 0, : step + 1]
    missed = (parts.sum(0) - source.sum((0, 1))).abs().max() / max(1.0, float(parts.abs().max()))
    checks = (
        *logit.audit.checks,
        Check("parts of a source position sum to what heads read there", float(missed), LIMIT),
    )
    ways = [
        Way(float(prefix[layer, head, at]), Writer("self_attention", layer, head), at)
        for layer, head, at in np.ndindex(prefix.shape)
    ]
    largest = source.abs().flatten().argsort(descending=True, stable=True)[:_TRIED]
    tried = [tuple(map(int, np.unravel_index(int(each), source.shape))) for each in largest]
    ways += _followed(model, run, tried, torch.stack([weights[at] * asks[at[:2]] for at in tried]))
    return WayBack(
        logit,
        read_only(source.float()),
        read_only(prefix.float()),
        tuple(encoder.writers),
        read_only(parts.float()),
        read_only(words.float()),
        tuple(sorted(ways, key=lambda way: -abs(way.value))[:_TRIED]),
        AuditReport(checks, told=(_SUMS,), claim="sums up"),
    )


def _followed(
    model: Network, run: Translation, tried: list[tuple[int, ...]], directions: Tensor
) -> list[Way]:
    """The ways through some reads, each head at a source position, to the source words."""
    places, ways = [at for _, _, at in tried], list[Way]()
    found = direct(model, run, "encoder", directions, places)
    words = without_biases(model, run, found, places)
    for n, (layer, head, at) in enumerate(tried):
        reader = Writer("cross_attention", layer, head)
        for writer, values in zip(found.writers, found.values, strict=True):
            if writer.head is not None:
                read = words[AttentionKind.ENCODER, writer.layer or 0][writer.head, n]
                ways += [Way(float(each), reader, at, writer, word) for word, each in enumerate(read)]
            elif writer.what != BIASES:
                ways.append(Way(float(values[n]), reader, at, writer, at if writer.what == TOKEN else None))
    return ways


def _stacked(reads: Read, kind: AttentionKind) -> Tensor:
    """(layers, heads, n, keys)."""
    return torch.stack([reads[which] for which in sorted(reads) if which[0] == kind])


@dataclass(frozen=True)
class WayNode:
    """One place of the picture: the logit, a writer, a position, or what is not shown of a column as one."""

    # 0 logit, 1 writers of the decoder, 2 positions read, 3 writers of the encoder, 4 source words
    column: int
    value: float  # its part of the logit
    writer: Writer | None = None
    position: int | None = None  # of the source; of the prefix if the column is 2 and `prefix` says so
    prefix: bool = False
    rest: str = ""  # "heads" or "others", for what is not shown


@dataclass(frozen=True)
class Edge:
    """What one node passes to the next column; the edges of a node sum to its value, unless it is an end."""

    start: int
    end: int
    value: float


class WayGraph:
    """The largest nodes of every column, the others as one, and the edges between them."""

    def __init__(
        self,
        found: WayBack,
        most: int = 7,  # nodes of a column that stand alone
    ) -> None:
        self.nodes, self.edges = [WayNode(0, found.logit.total)], list[Edge]()
        heads, others = self._written(found, most)
        shown = self._read(found, most, heads, others)
        self._encoded(found, most, shown)

    def _add(self, node: WayNode, reads: list[tuple[int, float]]) -> int:
        self.nodes.append(node)
        self.edges += [Edge(start, len(self.nodes) - 1, value) for start, value in reads]
        return len(self.nodes) - 1

    def _written(self, found: WayBack, most: int) -> tuple[dict[Writer, int], int]:
        """What wrote the last stream; the heads among the nodes, and the other heads as one."""
        values = dict(zip(found.logit.writers, found.logit.values.tolist(), strict=True))
        shown = _largest(values, most)
        nodes = {each: self._add(WayNode(1, values[each], each), [(0, values[each])]) for each in shown}
        rest = {each: value for each, value in values.items() if each not in nodes}
        sums = [sum(v for w, v in rest.items() if (w.head is None) is ends) for ends in (False, True)]
        self._add(WayNode(1, sums[1], rest="others"), [(0, sums[1])])
        other = self._add(WayNode(1, sums[0], rest="heads"), [(0, sums[0])])
        return {each: at for each, at in nodes.items() if each.head is not None}, other

    def _read(self, found: WayBack, most: int, heads: dict[Writer, int], other: int) -> dict[int, int]:
        """The positions that the heads read; the nodes of those of the source."""
        sides = {"cross_attention": found.source, "self_attention": found.prefix}
        totals = {
            (side == "self_attention", at): float(each)
            for side, reads in sides.items()
            for at, each in enumerate(reads.sum((0, 1)))
        }
        left = {at: self.nodes[at].value for at in (*heads.values(), other)}
        source = {}
        for prefix, position in _largest(totals, most):
            side = "self_attention" if prefix else "cross_attention"
            read = {
                node: float(sides[side][head.layer, head.head, position])
                for head, node in heads.items()
                if head.what == side
            }
            read[other] = totals[prefix, position] - sum(read.values())
            for node, value in read.items():
                left[node] -= value
            node = self._add(WayNode(2, totals[prefix, position], None, position, prefix), [*read.items()])
            if not prefix:
                source[position] = node
        self._add(WayNode(2, sum(left.values()), rest="others"), [*left.items()])
        return source

    def _encoded(self, found: WayBack, most: int, source: dict[int, int]) -> None:
        """What wrote at these positions, and the words that its heads read."""
        values = {
            (writer, at): float(found.encoder[n, at])
            for n, writer in enumerate(found.writers)
            for at in source
        }
        shown = _largest(values, most)
        heads = {
            each: self._add(WayNode(3, values[each], *each), [(source[each[1]], values[each])])
            for each in shown
        }
        for rest, ends in (("others", True), ("heads", False)):
            left = dict.fromkeys(source, 0.0)
            for (writer, at), value in values.items():
                if (writer, at) not in heads and (writer.head is None) is ends:
                    left[at] += value
            other = self._add(
                WayNode(3, sum(left.values()), rest=rest), [(source[at], value) for at, value in left.items()]
            )
        heads = {each: node for each, node in heads.items() if each[0].head is not None}
        totals = dict(enumerate(found.words[:, :, sorted(source)].sum((0, 1, 2)).tolist())) if source else {}
        rests = {node: self.nodes[node].value for node in (*heads.values(), other)}
        for word in _largest(totals, most):
            read = {
                node: float(found.words[writer.layer, writer.head, at, word])
                for (writer, at), node in heads.items()
            }
            read[other] = totals[word] - sum(read.values())
            for node, value in read.items():
                rests[node] -= value
            self._add(WayNode(4, totals[word], None, word), [*read.items()])
        self._add(WayNode(4, sum(rests.values()), rest="others"), [*rests.items()])


def _largest(values: dict[Any, float], most: int) -> list[Any]:
    """The keys of the largest values, in the order of the dictionary."""
    kept = sorted(values, key=lambda each: -abs(values[each]))[:most]
    return [each for each in values if each in kept]
