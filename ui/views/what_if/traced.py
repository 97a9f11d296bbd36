"""A causal trace as panels of places, and what it says in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from figures.base import labels
from figures.base.bars import percent
from figures.pages.causal_trace import TracePanel
from lenses.what_if.causal_trace import CausalTrace
from transformer.interventions import Embeddings, EncoderOutput, HeadOutput, Stream
from transformer.interventions.places import PatchPlace
from transformer.model.sites import AttentionKind
from transformer.runs.translation import Translation
from transformer.text.words import reading_groups
from ui.controls import Table, plain

Doubles = NDArray[np.float64]
GROUPS = {
    "encoder": "Encoder: the stream, and what cross-attention reads",
    "decoder": "Decoder: the stream after each layer",
    "heads": "Cross-attention: the output of each head",
}
"""The groups of places, by the name that a click brings back."""


@dataclass(frozen=True)
class _Row:
    """One place, with what it brings back at each of its tokens."""

    name: str  # its name on the map
    place: PatchPlace  # the place
    patched: Doubles  # (tokens, target) log-probabilities, in nats


@dataclass(frozen=True)
class Best:
    """The cell of some rows that brings back most."""

    place: PatchPlace  # the place
    position: int  # the position at which it was patched, from 0
    share: float  # the share that comes back


@dataclass(frozen=True, eq=False)
class Traced:
    """A causal trace, and what of the target is scored."""

    found: CausalTrace  # the trace
    base: Translation  # the run that the vectors come from, with the target forced
    scored: int | None  # the target token that is scored, from 0; None for the whole target

    @cached_property
    def gap(self) -> float:
        """What the other word costs, in nats."""
        return self.found.gap(self.scored)

    @cached_property
    def _rows(self) -> dict[str, list[_Row]]:
        found, stacks = self.found, self.base.config.stacks
        ends = {side: [Stream(end) for end in stacks[side].ends()] for side in ("encoder", "decoder")}
        encoder: list[PatchPlace] = [Embeddings("encoder"), *ends["encoder"]]
        streams = [_Row(_layer(i), place, found.encoder_stream[i]) for i, place in enumerate(encoder)]
        return {
            "encoder": [*streams, _Row("output", EncoderOutput(), found.encoder_output)],
            "decoder": [
                _Row(_layer(i + 1), place, found.decoder_stream[i]) for i, place in enumerate(ends["decoder"])
            ],
            "heads": [
                _Row(labels.head_name(i, j), HeadOutput(AttentionKind.CROSS, i, j), patched)
                for i, layer in enumerate(found.cross_heads)
                for j, patched in enumerate(layer)
            ],
        }

    def place(self, group: str, row: int) -> PatchPlace:
        """The place of a row, from 0, of a group."""
        return self._rows[group][row].place

    def panels(self) -> dict[str, TracePanel]:
        """The maps, by the names of their groups."""
        return {name: self._panel(name, rows) for name, rows in self._rows.items()}

    def _panel(self, name: str, rows: Sequence[_Row]) -> TracePanel:
        heads = self.found.cross_heads.shape[1]
        return TracePanel(
            name,
            [row.name for row in rows],
            self.tokens(name),
            np.stack([self._shares(row) for row in rows]),
            [self._notes(name, row) for row in rows],
            range(heads, len(rows), heads) if name == "heads" else (),
        )

    def tokens(self, group: str) -> tuple[str, ...]:
        """The tokens whose positions a group has: of the source, or of the target."""
        return self.found.base_tokens if group == "encoder" else self.found.target_tokens

    def _shares(self, row: _Row) -> Doubles:
        return self.found.returned(row.patched, self.scored)

    def _back(self, row: _Row) -> Doubles:
        """(tokens,) what comes back at each, in nats."""
        moved: Doubles = row.patched - self.found.changed
        return moved.sum(-1) if self.scored is None else moved[:, self.scored]

    def _notes(self, group: str, row: _Row) -> list[str]:
        names = labels.names(self.tokens(group))
        at = "predicting" if group != "encoder" else "at"
        return [
            f"{row.place}, {at} {name}\n{percent_of(share)} comes back: "
            f"{labels.number(back, '+.2f')} of {labels.number(self.gap)} nats"
            for name, share, back in zip(names, self._shares(row), self._back(row), strict=True)
        ]

    def best(self, group: str) -> Best:
        """The cell that brings back most: of all heads, of the encoder's output, or of a decoder layer.

        In the first row of the encoder, the token of the other word brings back everything by definition, and
        in the last row of the decoder, each token its own share of the gap: so the row before that counts, if
        there is one.
        """
        rows = self._rows[group]
        if group != "heads":
            rows = rows[-2:-1] if group == "decoder" and len(rows) > 1 else rows[-1:]
        shares = np.stack([self._shares(row) for row in rows])
        row, position = np.unravel_index(int(shares.argmax()), shares.shape)
        return Best(rows[int(row)].place, int(position), float(shares.max()))

    def words(self) -> tuple[str, str]:
        """The word of the first sentence and the one of the second."""
        sides = self.found.base_tokens, self.found.changed_tokens
        first, second = (_word(tokens, self.found.differing) for tokens in sides)
        return first, second

    def table(self) -> Table:
        """Every cell as a row of a CSV file; positions, layers and heads count from 1."""
        head = ["place", "position", "token", "share that comes back", "nats", "of nats"]
        return [head, *(line for name in self._rows for line in self._lines(name))]

    def _lines(self, group: str) -> Iterable[Sequence[object]]:
        tokens = self.tokens(group)
        for row in self._rows[group]:
            for at, (share, back) in enumerate(zip(self._shares(row), self._back(row), strict=True)):
                yield str(row.place), labels.count(at), tokens[at], share, back, self.gap


def percent_of(share: float) -> str:
    """A share that may lie below 0 or above 1: `104 %`, `−3 %`."""
    if 0 <= share <= 1:
        return percent(share)
    return labels.number(100 * share, ".0f") + labels.PER_CENT


def sentence(traced: Traced) -> str:
    """What the other word costs, and which places bring most of it back, as Markdown."""
    first, second = (f"“{plain(word)}”" for word in traced.words())
    steps = labels.names(traced.found.target_tokens)
    what = "the translation" if traced.scored is None else f"“{plain(steps[traced.scored])}”"
    cost = f"With {second} in place of {first}, {what} is **{abs(traced.gap):.2f} nats** "
    cost += "less probable." if traced.gap > 0 else "more probable."
    sources = labels.names(traced.found.base_tokens)
    output, decoder, heads = (traced.best(group) for group in GROUPS)
    assert isinstance(heads.place, HeadOutput)
    head = labels.head_phrase(heads.place.layer, heads.place.head)
    assert isinstance(decoder.place, Stream)
    after = _layer(decoder.place.sublayer.layer + 1)
    return (
        f"{cost} Patching “{plain(sources[output.position])}” in the encoder's output brings back "
        f"**{percent_of(output.share)}** of it, the decoder's stream after {after} where it "
        f"predicts “{plain(steps[decoder.position])}” **{percent_of(decoder.share)}**, and the best single "
        f"head of "
        f"cross-attention, {head} where it predicts “{plain(steps[heads.position])}”, "
        f"**{percent_of(heads.share)}**."
    )


def _layer(number: int) -> str:
    return f"layer {number}" if number else "embeddings"


def _word(tokens: Sequence[str], positions: Sequence[int]) -> str:
    return next(group.text for group in reading_groups(tokens) if positions[0] in group.indices)
