"""Where in the model the difference between two sentences acts on a translation (Meng et al. 2022, causal
tracing, here for translation and with a changed word in place of noise).

Two sentences differ in one word. The changed sentence is read, and at one place of the model, for one token,
what the base sentence gave there is put in. How much of the log-probability of the base sentence's
translation comes back says how much of the difference passes through that place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lenses.measures.stream import Tell, silent
from transformer.interventions import Embeddings, EncoderOutput, HeadOutput, Stream
from transformer.interventions.places import PatchPlace
from transformer.model.sites import AttentionKind, Side
from transformer.runs.batched import OneRun, Passes, RowChanges, Swap
from transformer.runs.call import held
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator
from transformer.runs.wording import InputError
from transformer.text.words import reading_groups
from transformer.trace.recorder import Capture

Doubles = NDArray[np.float64]
SIDES: tuple[Side, Side] = ("encoder", "decoder")
SMALLEST_GAP = 1e-3
"""Nats between the two sentences below which no share is given: it would be noise."""


@dataclass(frozen=True, eq=False)
class CausalTrace:
    """Log-probabilities of one target, in nats, with each place of the model patched alone.

    The last axis of every array is the target token that is scored; the axis before it is the token whose
    place is patched.
    """

    base_tokens: tuple[str, ...]  # the source whose vectors are put in
    changed_tokens: tuple[str, ...]  # the source that is read, as many tokens
    differing: tuple[int, ...]  # positions, from 0, at which the two differ
    target_tokens: tuple[str, ...]  # the target, forced in every run
    base: Doubles  # (target,) with the base sentence
    changed: Doubles  # (target,) with the changed sentence, nothing patched
    # (layers + 1, source, target): the encoder's embeddings, then the stream after each layer
    encoder_stream: Doubles
    # (source, target): what cross-attention reads. It is a function of the last stream, so it is the same as
    # its last row.
    encoder_output: Doubles
    cross_heads: Doubles  # (layers, heads, target, target): one head's output at one target position
    decoder_stream: Doubles  # (layers, target, target): the stream after each layer of the decoder

    def gap(self, step: int | None = None) -> float:
        """Cost of the changed word: base − changed log-probability, in nats, of a step or the target."""
        return float(_scored(self.base - self.changed, step))

    def returned(
        self,
        patched: Doubles,  # one of the arrays, or a part of it that keeps the last axis
        step: int | None = None,  # the target token that is scored, from 0; None for the whole target
    ) -> Doubles:
        """The share of the gap that comes back: 0 as with the changed sentence, 1 as with the base.

        Shares can lie below 0 or above 1, and those of different places need not add up to 1. ``patched``
        without its last axis; NaN if the changed word makes hardly any difference.
        """
        gap = self.gap(step)
        back: Doubles = np.asarray(_scored(patched - self.changed, step))
        return back / gap if abs(gap) >= SMALLEST_GAP else np.full_like(back, np.nan)


def _scored(log_probs: Doubles, step: int | None) -> Doubles:
    found: Doubles = log_probs.sum(-1) if step is None else log_probs[..., step]
    return found


def causal_trace(
    translator: Translator,  # the model
    base_text: str,  # the sentence whose vectors are put in
    changed_text: str,  # the same sentence with one word replaced by another of as many tokens
    # the output that is scored, as in ``Translator.force``; None for the base's own translation
    target: str | Sequence[int] | Sequence[str] | None = None,
    tell: Tell = silent,  # hears what share is done
) -> CausalTrace:
    """Patches every place of the changed sentence's run from the base sentence's run.

    One batched forward pass for each layer and sort of place; long sentences take several. InputError as for
    ``changed_positions``, or for a recurrent model, which has no residual stream; InterventionError if the
    target names an unknown token.
    """
    if not translator.config.stacks["encoder"].passed():
        raise InputError("This model has no residual stream that could be traced from layer to layer.")
    differing = changed_positions(translator, base_text, changed_text)
    if target is None:
        target = translator.translate(base_text, capture=False).target_ids
    base = translator.force(base_text, target, capture=Capture(residual=True))
    changed = translator.force(changed_text, target, capture=False)
    config, length = translator.config, len(base.target_tokens)
    encoder, decoder = ([Stream(end) for end in config.stacks[side].ends()] for side in SIDES)
    entered: list[PatchPlace] = [Embeddings("encoder"), *encoder]
    heads = [
        [HeadOutput(AttentionKind.CROSS, layer, head) for head in range(config.n_heads)]
        for layer in range(config.sites[AttentionKind.CROSS].n_layers)
    ]
    cells = _Cells(translator, changed_text, base, tell, len(entered) + 1 + len(heads) + len(decoder))
    return CausalTrace(
        base.source_tokens,
        changed.source_tokens,
        differing,
        base.target_tokens,
        np.array(base.log_probs),
        np.array(changed.log_probs),
        np.stack([cells.patched(place) for place in entered]),
        cells.patched(EncoderOutput()),
        np.stack([cells.patched(*layer).reshape(-1, length, length) for layer in heads]),
        np.stack([cells.patched(place) for place in decoder]),
    )


def changed_positions(translator: Translator, base_text: str, changed_text: str) -> tuple[int, ...]:
    """Positions, from 0, of the tokens in which two sentences differ: those of one word.

    InputError if they are the same, differ in more than one word or in the number of tokens, or one is empty
    or too long.
    """
    ids = [translator.ids(text) for text in (base_text, changed_text)]
    if ids[0] == ids[1]:
        raise InputError("The two sentences are the same; change one word.")
    if len(ids[0]) != len(ids[1]):
        raise InputError(
            f"The sentences have {len(ids[0])} and {len(ids[1])} tokens; "
            "replace a word by one that has as many tokens."
        )
    found = tuple(at for at, (one, other) in enumerate(zip(*ids, strict=True)) if one != other)
    words = max(_words_at(translator.source_pieces(each), found) for each in ids)
    if words > 1:
        raise InputError(f"The sentences differ in {words} words; change only one.")
    return found


def _words_at(pieces: tuple[str, ...], positions: Sequence[int]) -> int:
    """Number of words that hold the pieces at some positions."""
    return sum(any(at in group.indices for at in positions) for group in reading_groups(pieces))


class _Cells:
    """Patches the cells of a place: one run for each of its positions."""

    def __init__(
        self,
        translator: Translator,  # the model
        changed_text: str,  # the sentence that is read
        base: Translation,  # the run that the vectors come from, with its residual stream
        tell: Tell,  # hears what share is done
        count: int,  # how often cells are patched
    ) -> None:
        ids = (*translator.ids(changed_text), translator.config.eos_id)
        self._passes = Passes(translator.model, ids, base.target_ids, RowChanges)
        assert base.attention is not None
        self._held = base.attention
        self._tell, self._count, self._done = tell, count, 0

    def patched(self, *places: PatchPlace) -> Doubles:
        """(places × positions, target) log-probabilities, in nats."""
        self._tell(self._done / self._count)
        self._done += 1
        runs = [run for place in places for run in self._runs(place)]
        found: Doubles = self._passes.log_probs(runs).double().numpy()
        return found

    def _runs(self, place: PatchPlace) -> Iterator[OneRun]:
        for position, vector in enumerate(held(self._held, place)):
            yield [Swap(place, vector, position)]
