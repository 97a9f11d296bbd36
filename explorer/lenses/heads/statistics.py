"""Statistics of where each attention head looks, over one sentence or many.

The *own position* of a row is the key with the same index: the same token in self-attention, the diagonal in
cross-attention. Rows that see only one key are always left out, because they cannot look anywhere else. Each
statistic also leaves out rows for which it is undefined: the first row has no previous key, and under a
causal mask no row has a next key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.lenses.words.function_words import SOURCE_LANGUAGES, TARGET_LANGUAGES, is_content
from explorer.lenses.words.gold_links import trace_of
from explorer.lenses.words.groups import reading_groups
from transformer.config import AttentionKind, Side
from transformer.model import Projections
from transformer.run import Translation
from transformer.text.words import EOS, is_punctuation, is_special, readable

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
FUNCTION_WORDS: dict[Side, frozenset[str]] = {"encoder": SOURCE_LANGUAGES, "decoder": TARGET_LANGUAGES}


@dataclass(frozen=True)
class Keys:
    """Facts about the keys of a map that the statistics need."""

    columns: Mapping[str, Floats]  # maps each mass to its keys, (keys,) 0 or 1
    last: int | None  # the last key with text; None if no key has text
    # (keys,) index of the word of each piece in self-attention; None in cross-attention
    words: NDArray[np.int64] | None

    @classmethod
    def of(
        cls, tokens: Sequence[str], *, own: bool, function_words: frozenset[str] = SOURCE_LANGUAGES
    ) -> Keys:
        """Derives the facts from the pieces of the keys; `own` says that the rows are the same pieces."""
        special = np.array([is_special(token) for token in tokens])
        text = np.flatnonzero(~special)
        masks = {
            "eos_mass": np.array([token == EOS for token in tokens]),
            "special_mass": special,
            "punctuation_mass": np.array([is_punctuation(readable(token)) for token in tokens]),
            "content_mass": content_pieces(tokens, function_words),
        }
        return cls(
            {name: mask.astype(np.float32) for name, mask in masks.items()},
            int(text[-1]) if len(text) else None,
            _word_numbers(tokens) if own else None,
        )


def content_pieces(tokens: Sequence[str], function_words: frozenset[str]) -> Bools:
    """(tokens,) True for pieces of words that have a letter or digit and are not function words."""
    content = np.zeros(len(tokens), dtype=bool)
    for group in reading_groups(tokens):
        if is_content(group.text, function_words) and not is_special(group.text):
            content[group.start : group.stop] = True
    return content


def _word_numbers(tokens: Sequence[str]) -> NDArray[np.int64]:
    numbers = np.zeros(len(tokens), dtype=np.int64)
    for number, group in enumerate(reading_groups(tokens)):
        numbers[group.start : group.stop] = number
    return numbers


def row_statistics(weights: Floats, mask: Bools, keys: Keys) -> dict[str, Floats]:
    """The `STATISTICS` of every row of weights (heads, queries, keys) that follow from the map alone.

    Maps each name to (heads, queries); NaN in rows that are left out.
    """
    values = _pointing(weights, mask, keys) | _masses(weights, mask, keys) | _spread(weights, mask)
    alone = mask.sum(-1) <= 1
    for found in values.values():
        found[:, alone] = np.nan
    return values


def _offset(mask: Bools, offset: int) -> tuple[NDArray[np.int64], Bools]:
    """For each row, the key at this offset, and whether such a key exists and is visible."""
    n_queries, n_keys = mask.shape
    wanted = np.arange(n_queries) + offset
    place = wanted.clip(0, n_keys - 1)
    return place, (wanted == place) & mask[np.arange(n_queries), place]


def _pointing(weights: Floats, mask: Bools, keys: Keys) -> dict[str, Floats]:
    best = weights.argmax(-1)
    found = {"first": (best == 0).astype(np.float32)}
    for name, offset in (("previous", -1), ("same", 0), ("next", 1)):
        place, there = _offset(mask, offset)
        found[name] = np.where(there, best == place, np.nan).astype(np.float32)
    if keys.last is not None and mask[:, keys.last].all():
        found["last"] = (best == keys.last).astype(np.float32)
    if keys.words is not None:
        found["same_word"] = (keys.words[best] == keys.words).astype(np.float32)
    return found


def _masses(weights: Floats, mask: Bools, keys: Keys) -> dict[str, Floats]:
    found = {name: weights @ column for name, column in keys.columns.items()} | {
        "first_mass": weights[:, :, 0].copy()
    }
    rows = np.arange(mask.shape[0])
    for name, offset in (("previous_mass", -1), ("same_mass", 0), ("next_mass", 1)):
        place, there = _offset(mask, offset)
        found[name] = np.where(there, weights[:, rows, place], np.float32(np.nan))
    chance = mask @ keys.columns["content_mass"] / np.maximum(1, mask.sum(-1))
    found["content_chance"] = np.broadcast_to(chance, weights.shape[:2]).astype(np.float32)
    return found


def _spread(weights: Floats, mask: Bools) -> dict[str, Floats]:
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    visible = np.log(np.maximum(2, mask.sum(-1)))
    distance = abs(np.arange(mask.shape[0])[:, None] - np.arange(mask.shape[1])).astype(np.float32)
    return {
        "peak": weights.max(-1),
        "entropy": (-np.einsum("hqk,hqk->hq", weights, logs) / visible).astype(np.float32),
        "mean_distance": np.einsum("hqk,qk->hq", weights, distance),
    }


@dataclass(frozen=True)
class Totals:
    """Statistics of all heads of one kind, summed over rows."""

    sums: dict[str, Floats]  # maps each name to sums (layers, heads)
    rows: dict[str, int]  # maps each name to the number of rows in the sum

    def __add__(self, other: Totals) -> Totals:
        sums, rows = dict(self.sums), dict(self.rows)
        for name, values in other.sums.items():
            sums[name] = sums[name] + values if name in sums else values
            rows[name] = rows.get(name, 0) + other.rows[name]
        return Totals(sums, rows)

    def means(self) -> dict[str, Floats]:
        """Maps each name to means (layers, heads); a statistic without rows is left out."""
        return {
            name: total / np.float32(self.rows[name]) for name, total in self.sums.items() if self.rows[name]
        }


@dataclass(frozen=True, eq=False)
class HeadsOfKind:
    """All heads of one kind over one sentence."""

    weights: Floats  # (layers, heads, queries, keys)
    mask: Bools  # (layers, queries, keys), True = may attend
    rows: dict[str, Floats]  # maps each statistic to (layers, heads, queries); NaN in rows that are left out
    lengths: Floats | None  # (layers, heads, keys) length of what each key's value writes; None without W^O

    @classmethod
    def of(
        cls, translation: Translation, kind: AttentionKind, projections: Projections | None = None
    ) -> HeadsOfKind:
        """Reads a sentence; `contribution` and the lengths need W^O of the model."""
        trace, keys = trace_of(translation), keys_of(translation, kind)
        weights, masks, layers, lengths = [], [], [], []
        for layer, record in enumerate(trace.layers[kind]):
            mask = trace.mask(kind, layer, 0)
            weights.append(trace.weights(kind, layer))
            found = row_statistics(weights[-1], mask, keys)
            if projections is not None:
                out = projections(kind, layer)
                added = np.linalg.norm(record.output.numpy() @ out, axis=-1)
                found["contribution"] = np.where(mask.sum(-1) > 1, added, np.nan)
                lengths.append(np.linalg.norm(record.value.numpy() @ out, axis=-1))
            masks.append(mask)
            layers.append(found)
        rows = {name: np.stack([found[name] for found in layers]) for name in layers[0]}
        return cls(np.stack(weights), np.stack(masks), rows, np.stack(lengths) if lengths else None)

    def totals(self) -> Totals:
        """The statistics, summed over the rows."""
        return Totals(
            {name: np.nansum(rows, axis=-1) for name, rows in self.rows.items()},
            {name: int((~np.isnan(rows[0, 0])).sum()) for name, rows in self.rows.items()},
        )


def sentence_totals(
    translation: Translation, kind: AttentionKind, projections: Projections | None = None
) -> Totals:
    """The statistics of all heads of a kind over one sentence; `contribution` needs W^O of the model."""
    return HeadsOfKind.of(translation, kind, projections).totals()


def keys_of(translation: Translation, kind: AttentionKind) -> Keys:
    """Facts about the keys of one kind of attention."""
    site = translation.config.sites[kind]
    words = FUNCTION_WORDS[site.key_side]
    return Keys.of(translation.labels(kind).keys, own=site.own_keys, function_words=words)
