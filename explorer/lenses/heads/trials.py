"""Small experiments on every head, over the first sentences of a survey.

*Place or meaning.* Two words of as many pieces change places: in the source for encoder and cross-attention,
in the target for the decoder. Of the old pattern's weight in the rows and columns of these words, `stays` is
the share that the new pattern has at the same places, `follows` the share that it has where the words are;
`stays_error` is the standard error of their difference over sentences. The decoder has none: where a word may
be seen from after the exchange is for the mask to decide.

*Source share.* What of each prediction comes from the source, by ALTI+, but for the first step, which has no
prefix, and `</s>`: what is usual for the model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from explorer.lenses.heads.statistics import Floats, HeadsOfKind
from explorer.lenses.measures.alti import alti
from explorer.lenses.what_if.rearranged import swapped_order, words_of
from explorer.lenses.words.gold_links import trace_of
from transformer.config import AttentionKind
from transformer.run import Translation
from transformer.translator import InputError, Translator

CROSS = AttentionKind.CROSS
Share = tuple[Floats, Floats]
"""What is counted, and that of which it is a share, (layers, heads) each."""
Tried = tuple[AttentionKind, dict[str, Share]]
"""What was found of the heads of a kind in a sentence, by statistic."""


class Trials:
    """Sums over sentences."""

    def __init__(self, translator: Translator) -> None:
        self._translator = translator
        self._tried: dict[AttentionKind, dict[str, list[Share]]] = defaultdict(lambda: defaultdict(list))
        self._shares: list[float] = []

    def tried(self, run: Translation, readings: dict[AttentionKind, HeadsOfKind]) -> list[Tried]:
        """Tries a sentence, of whose run these are the readings."""
        return [
            (kind, _kept(readings[kind].weights, _weights(other, kind), order, kind))
            for kind, order, other in self._exchanged(run)
        ]

    def shares(self, run: Translation) -> list[float]:
        """Share of the source in every step but the first and the last; empty without masked attention."""
        if set(run.config.sites) != set(AttentionKind):
            return []
        found: list[float] = alti(self._translator.model, run).source.sum(1)[1:-1].tolist()
        return found

    def take(self, tried: list[Tried], shares: list[float]) -> None:
        """Adds a sentence."""
        self._shares += shares
        for kind, found in tried:
            for name, pair in found.items():
                self._tried[kind][name].append(pair)

    @property
    def usual(self) -> tuple[float, float, float] | None:
        """The share of the source that 5 %, 50 % and 95 % of the steps stay below; None without any."""
        low, middle, high = np.percentile(self._shares, (5, 50, 95)).tolist() if self._shares else [0.0] * 3
        return (low, middle, high) if self._shares else None

    def means(self, kind: AttentionKind) -> dict[str, Floats]:
        """Maps each statistic to (layers, heads); one that could not be tried is left out."""
        found = {
            name: _ratio(pairs)
            for name, pairs in self._tried[kind].items()
            if any(over.any() for _, over in pairs)
        }
        means = {name: ratio.astype(np.float32) for name, (ratio, _) in found.items()}
        if "stays" in found and kind is not AttentionKind.DECODER:
            parts = found["stays"][1] - found["follows"][1]
            if (count := len(parts)) > 1:
                means["stays_error"] = np.sqrt(count / (count - 1) * (parts**2).sum(0)).astype(np.float32)
        return means

    def _exchanged(self, run: Translation) -> list[tuple[AttentionKind, list[int], Translation]]:
        """By kind, the new order of the tokens along its keys, and the run in which they have it."""
        translator, found = self._translator, []
        if (order := _exchange(run.source_tokens)) is not None:
            ids = self._ids(run.source_text)
            moved = tuple(ids[place] for place in order)
            try:
                text = translator.tokenizer.decode(moved)
                other = translator.force(text, run.target_ids)
            except InputError:
                other = run
            if self._ids(other.source_text) == moved:
                found += [(AttentionKind.ENCODER, order, other), (CROSS, order, other)]
        kind = AttentionKind.DECODER
        if kind in run.config.sites and (order := _exchange(run.decoder_input_tokens)) is not None:
            starts = len(run.decoder_input_tokens) - len(run.target_ids) + 1
            target = [*run.target_ids]
            target[: len(order) - starts] = [target[place - starts] for place in order[starts:]]
            try:
                other = translator.force(run.source_text, target)
            except InputError:
                return found
            found.append((kind, order, other))
        return found

    def _ids(self, text: str) -> tuple[int, ...]:
        return (*self._translator.ids(text), self._translator.config.eos_id)


def _ratio(pairs: Sequence[Share]) -> tuple[Floats, Floats]:
    """A share over all sentences, and what each adds to its error, (sentences, layers, heads)."""
    counted, over = (np.stack(each).astype(float) for each in zip(*pairs, strict=True))
    whole = np.maximum(over.sum(0), 1e-9)
    ratio = counted.sum(0) / whole
    return ratio, (counted - ratio * over) / whole


def _weights(run: Translation, kind: AttentionKind) -> Floats:
    trace = trace_of(run)
    return np.stack([trace.weights(kind, layer) for layer in range(len(trace.layers[kind]))])


def _exchange(tokens: tuple[str, ...]) -> list[int] | None:
    """The order of tokens after the first two words of as many pieces, with one between, change places."""
    words = words_of(tokens)
    for one, other in combinations(range(len(words)), 2):
        alike = len(words[one].indices) == len(words[other].indices)
        if other - one > 1 and alike and words[one].text != words[other].text:
            return list(swapped_order(tokens, one, other))
    return None


def _kept(before: Floats, after: Floats, order: list[int], kind: AttentionKind) -> dict[str, Share]:
    """`stays` and `follows`."""
    moved = np.array(order) != np.arange(len(order))
    cells = np.broadcast_to(moved, before.shape[-2:])
    along = before[..., order]
    if kind is not CROSS:
        cells = cells | moved[:, None]
        along = along[..., order, :]
    return {
        name: (np.minimum(old, after)[..., cells].sum(-1), old[..., cells].sum(-1))
        for name, old in (("stays", before), ("follows", along))
    }
