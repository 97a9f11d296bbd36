"""Statistics of where each attention head looks, over one sentence or many.

Left out are rows that see one key, or for which a statistic is undefined: the first has no previous
key. The *own position* of a row is the key with the same index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from explorer.lenses.heads.roles import STATISTICS, Floats
from explorer.lenses.words.groups import (
    CONTENT,
    SOURCE_LANGUAGES,
    TARGET_LANGUAGES,
    reading_groups,
    sorts_of,
)
from explorer.lenses.words.linking import CrossAlignments
from transformer.config import AttentionKind, Head, Side
from transformer.decoding import OverflowedError
from transformer.model import Projections
from transformer.reader import InputError
from transformer.run import Translation
from transformer.text.words import is_end, is_punctuation, is_special, readable
from transformer.view import BoolArray

if TYPE_CHECKING:
    from transformer.translator import Translator

NAMES = tuple(statistic.name for statistic in STATISTICS)
FUNCTION_WORDS: dict[Side, frozenset[str]] = {
    "encoder": SOURCE_LANGUAGES,
    "decoder": TARGET_LANGUAGES,
}


def content_pieces(tokens: Sequence[str], function_words: frozenset[str]) -> BoolArray:
    """(tokens,) True for pieces of words that have a letter or digit and are not function words."""
    groups = reading_groups(tokens)
    content = [sort == CONTENT for sort in sorts_of(groups, function_words)]
    return np.repeat(np.array(content, bool), [len(group.indices) for group in groups])


def _row_statistics(
    weights: Floats,  # (layers, heads, queries, keys)
    mask: BoolArray,  # (layers, queries, keys), True = may attend
    tokens: Sequence[str],  # the pieces of the keys
    own_keys: bool,  # whether the rows are the same pieces
    function_words: frozenset[str],
) -> dict[str, Floats]:
    """Those of `STATISTICS` that maps alone give: (layers, heads, queries) each."""
    rows = np.arange(mask.shape[1])
    keys = np.arange(mask.shape[2])
    best = weights.argmax(-1)
    visible = mask.sum(-1)
    columns = {
        "eos_mass": list(map(is_end, tokens)),
        "special_mass": list(map(is_special, tokens)),
        "punctuation_mass": [is_punctuation(readable(token)) for token in tokens],
        "content_mass": content_pieces(tokens, function_words),
    }
    statistics = {name: weights @ np.array(column, np.float32) for name, column in columns.items()}
    statistics |= {"first": best == 0, "first_mass": weights[..., 0], "peak": weights.max(-1)}
    for name, offset in (("previous", -1), ("same", 0), ("next", 1)):
        place = (rows + offset).clip(0, len(keys) - 1)
        there = ((place == rows + offset) & mask[:, rows, place])[:, None]
        statistics[name] = np.where(there, best == place, np.nan)
        statistics[f"{name}_mass"] = np.where(there, weights[..., rows, place], np.nan)
    text = np.flatnonzero(~np.array(columns["special_mass"]))
    if len(text) and mask[..., text[-1]].all():
        statistics["last"] = best == text[-1]
    if own_keys:
        groups = reading_groups(tokens)
        words = np.repeat(range(len(groups)), [len(group.indices) for group in groups])
        statistics["same_word"] = words[best] == words
    statistics["content_chance"] = (
        mask @ np.array(columns["content_mass"], np.float32) / visible.clip(1)
    )[:, None]
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    statistics["entropy"] = (
        -np.einsum("lhqk,lhqk->lhq", weights, logs) / np.log(visible.clip(2))[:, None]
    )
    statistics["mean_distance"] = np.einsum(
        "lhqk,qk->lhq", weights, abs(rows[:, None] - keys).astype(np.float32)
    )
    return statistics


class Sums(NamedTuple):
    """The statistics summed over rows."""

    totals: Floats  # (STATISTICS, layers, heads)
    rows: NDArray[np.int64]  # (STATISTICS,) how many rows have each

    @classmethod
    def of(cls, rows: Floats) -> Sums:
        """Over (STATISTICS, layers, heads, queries), with NaN where a row is left out.

        A head with fewer rows than another, as weights that are no numbers have, is scaled to as
        many; one without any is NaN.
        """
        counts = (~np.isnan(rows)).sum(-1)
        most = counts.max((1, 2))
        at_most = most[:, None, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.where(at_most > 0, at_most / counts, 1).astype(np.float32)
            return cls(np.nansum(rows, axis=-1) * scale, most)

    def means(self) -> dict[str, Floats]:
        """Maps each statistic to means (layers, heads); a statistic without rows is left out."""
        sums = zip(NAMES, *self, strict=True)
        return {name: total / np.float32(rows) for name, total, rows in sums if rows}


def added(sentences: Iterable[Sums]) -> Sums:
    """The sums of several sentences together."""
    totals, rows = zip(*sentences, strict=True)
    return Sums(sum(totals), sum(rows))


class HeadsOfKind(NamedTuple):
    """All heads of one kind over one sentence."""

    weights: Floats  # (layers, heads, queries, keys)
    mask: BoolArray  # (layers, queries, keys), True = may attend
    rows: Floats  # (STATISTICS, layers, heads, queries); NaN in rows that are left out
    sums: Sums  # the statistics, summed over the rows
    lengths: (
        Floats | None
    )  # (layers, heads, keys) length of what each key's value writes; None without W^O

    @classmethod
    def of(
        cls, run: Translation, kind: AttentionKind, projections: Projections | None = None
    ) -> HeadsOfKind:
        """Reads a sentence; `contribution` and the lengths need W^O of the model."""
        site = run.config.sites[kind]
        lengths = None
        layers = range(site.n_layers)
        weights = np.stack([run.layer_weights(kind, layer) for layer in layers])
        finite = np.all(np.isfinite(weights), axis=-1)  # as weights of one's own need not be
        if not finite.all():
            weights = np.where(np.expand_dims(finite, -1), weights, np.nan)
        mask = np.stack([run.mask(kind, layer, 0) for layer in layers])
        words = FUNCTION_WORDS[site.key_side]
        known = _row_statistics(weights, mask, run.labels(kind).keys, site.own_keys, words)
        if projections is not None:
            parts = [projections(kind, layer) for layer in layers]
            pairs = list(zip(run.trace.layers[kind], parts, strict=True))
            outputs = [record.output.numpy() @ part for record, part in pairs]
            values = [record.values().numpy() @ part for record, part in pairs]
            known["contribution"] = np.linalg.norm(np.stack(outputs), axis=-1)
            lengths = np.linalg.norm(np.stack(values), axis=-1)
        rows = np.full((len(NAMES), *weights.shape[:3]), np.nan, np.float32)
        chooses = (mask.sum(-1) > 1)[:, None] & finite
        for name, by_row in known.items():
            rows[NAMES.index(name)] = np.where(chooses, by_row, np.nan)
        return cls(weights, mask, rows, Sums.of(rows), lengths)


Grid = list[list[dict[str, float]]]
"""By layer and head, the statistics."""


class MeasuredAligner(TypedDict):
    """The heads whose links between words are the best, and their error."""

    heads: tuple[Head, ...]
    rows: str
    aer: float


class MeasuredHeads(TypedDict):
    """What `heads.json` holds, but for its provenance."""

    default: dict[str, list[int]]
    heads: dict[str, Grid]
    aligner: NotRequired[MeasuredAligner]


RESTING_MASS = 0.5
MOST_TOKENS = 40
"""Of a translation by which the first heads of an unknown model are chosen."""


def grid(sums: Sums, errors: Mapping[str, Floats] | None = None) -> Grid:
    """Means, and errors (layers, heads), by layer and head, rounded to four decimals."""
    means = sums.means() | dict(errors or {})
    (layers, heads) = sums.totals.shape[1:]
    return [
        [
            {name: round(float(values[layer, head]), 4) for name, values in means.items()}
            for head in range(heads)
        ]
        for layer in range(layers)
    ]


def kind_sums(
    run: Translation, projections: Projections | None = None
) -> dict[AttentionKind, Sums]:
    """The sums of one sentence for each kind of attention; `projections` for `contribution`."""
    return {kind: HeadsOfKind.of(run, kind, projections).sums for kind in run.config.sites}


def measure_heads(
    sentences: Iterable[dict[AttentionKind, Sums]], alignments: CrossAlignments | None = None
) -> MeasuredHeads:
    """Means of all heads, and those to open first; gold alignments add errors, and the
    `aligner`."""
    read = [*sentences]
    errors = dict[AttentionKind, dict[str, Floats]]()
    if alignments is not None and alignments.counts:
        errors = {AttentionKind.CROSS: alignments.errors()}
    kinds = read[0] if read else ()
    sums = {kind: added(sentence[kind] for sentence in read) for kind in kinds}
    heads = {kind.value: grid(total, errors.get(kind)) for kind, total in sums.items()}
    measured: MeasuredHeads = {
        "default": {kind: list(choose_head(of_kind)) for kind, of_kind in heads.items()},
        "heads": heads,
    }
    if alignments is not None and alignments.counts:
        best, error = alignments.best()
        measured["aligner"] = {"heads": best.heads, "rows": best.rows, "aer": round(error, 4)}
    return measured


def choose_head(heads: Grid, sharp: bool = False) -> Head:
    """Layer and head to open first: by error, else neighbours, those that rest last; or the
    sharpest."""

    def merit(place: Head) -> tuple[bool, float]:
        head = heads[place[0]][place[1]]
        if sharp:
            rests = ("special_mass", "punctuation_mass", "first_mass")
            return True, head.get("peak", 0.0) - sum(head.get(name, 0.0) for name in rests)
        awake = max(head.get("eos_mass", 0.0), head.get("first", 0.0)) <= RESTING_MASS
        points = max(head.get("previous", 0.0), head.get("next", 0.0))
        return awake, -head["aer"] if "aer" in head else points

    return max(((layer, i) for layer, row in enumerate(heads) for i in range(len(row))), key=merit)


def first_heads(model: Translator, texts: Iterable[str]) -> dict[str, Head]:
    """By kind, the head of an unknown model to open first, by its runs of some texts; or empty."""
    sites = model.config.sites
    limit = min(MOST_TOKENS, model.config.max_positions)
    sums = []
    for text in texts:
        with suppress(InputError, OverflowedError):
            if model.continues:  # the text itself
                run = model.force(model.ids(text)[:limit])
            elif not model.config.writes:
                run = model.fill(text)
            else:
                run = model.translate(text, beam_size=1, max_length=limit)
            sums.append(kind_sums(run))
    heads = measure_heads(sums)["heads"]
    return {
        kind: choose_head(table, not sites[AttentionKind(kind)].own_keys)
        for kind, table in heads.items()
    }
