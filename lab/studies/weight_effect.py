"""`python -m lab weight-effect`: whether weights say what keys do, by kind and layer, beside controls."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

import numpy as np

from lab.measurement import Json, Pairs, Subject, measurement, one_thread
from lab.studies.faithfulness import runs_of
from lab.study import Chart, Study, chart, curves, interval, named
from lenses.measures.agreement import agreement
from lenses.measures.carried import carried
from lenses.measures.effect import Effects, cells
from lenses.measures.rewired import permuted, rewired, uniform
from transformer.commands.arguments import shown
from transformer.model.sites import AttentionKind
from transformer.runs.bootstrap import Cell, Floats, cell, resamples
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator
from transformer.storage.description import WEIGHT_EFFECT_FILE
from transformer.text.function_words import SOURCE_LANGUAGES, is_content
from transformer.text.numbers import number
from transformer.text.pairs import read_pairs
from transformer.text.words import is_special, reading_groups
from transformer.trace.view import Array, BoolArray

ORDERS = ("weight", "carried", "other head", "permuted")
"""What is compared with the effect: the head's own weights, what they carried, the weights of another head of
the layer, its own in another order."""
SORTS = ("content", "function", "other")
"""Source words: those of no list, those of the list of function words, punctuation and `</s>`."""
REPLACED = ("uniform", "permuted", "other head", "nothing")
"""Substitutes for the weights of the whole head."""
LEAST = 3
"""Keys that a query must see: fewer have no order to speak of."""


class Row(NamedTuple):
    """Results at one head of one layer in one sentence."""

    size: list[float]  # by ``ORDERS``: rank correlation with |Δ log p|, mean over queries
    loss: list[float]  # the same with −Δ log p of the predicted token; not a number in the encoder
    share: list[float]  # by ``SORTS``: of keys, of weight, of effect, one after another
    within: list[float]  # rank correlation of weight with |Δ log p| among content words, among function words
    replaced: list[float]  # by ``REPLACED``: −Δ log p per token
    moved: list[float]  # by ``REPLACED``: |Δ log p| per token


def told(found: Json) -> Study:
    """How well weights rank effects, and how little other weights cost."""
    kinds = found["kinds"]

    def each_kind(of: Callable[[Json], Json | None], form: str = ".2f") -> str:
        cells = {kind: of(each) for kind, each in kinds.items()}
        return ", ".join(
            f"{number(cell['value'], form)} ({named(kind)})" for kind, cell in cells.items() if cell
        )

    return Study(
        topic="Explanation",
        question=f"Does a weight of “{found['model']}” say what hiding its key would do?",
        finding="It says how much: its rank correlation with the size of the effect is "
        f"{each_kind(lambda each: each['size']['weight'])}. It hardly says whether the token needs the key: "
        f"{each_kind(lambda each: each['loss']['weight'])}.",
        parts=[
            "In each layer of each sentence a head and some of its queries were drawn. Each key was hidden "
            "from that head and query alone, and the model ran again. **Size** |Δ log p|: how much the "
            "probability of the token moved; part of the agreement is arithmetic, as hiding a key of weight "
            "α moves what the head writes by α / (1 − α) times the way from its value to the head's mean; "
            "weights of another head are the control. **Loss** −Δ log p: whether the token needed the "
            "key; nothing forces it to follow the weight. A query of the encoder predicts no token: its size "
            "is summed over all tokens, and it has no loss.",
            _chart("dots", "size", "the size of the effect", kinds),
            _chart("dots", "loss", "the loss of the token", kinds),
            curves(
                "Rank correlation of weights with the size of the effect, by layer",
                ("kind", "layer", "rank correlation", "low", "high"),
                {
                    named(kind): [
                        (i, *interval(layer["weight"]))
                        for i, layer in enumerate(each["layers"], start=1)
                        if layer["weight"]
                    ]
                    for kind, each in kinds.items()
                },
            ),
            "**Other weights in the place of the head's own**, for all its queries; the values stay. "
            "*Nothing*: the head adds nothing, not even b_V. Any one head costs little, since the others "
            "stay; what counts is whether other weights cost as much as nothing does. Uniform weights cost a "
            f"token {each_kind(lambda each: each['replaced']['uniform'], '.3f')} nats, nothing "
            f"{each_kind(lambda each: each['replaced']['nothing'], '.3f')}.",
            _chart("dots", "replaced", "nats that a token loses", kinds),
            _chart("dots", "moved", "nats by which a token moves either way", kinds),
            "**Content words, function words, and the rest** (punctuation and `</s>`), over source words: "
            "their share of the keys, of the weight, and of the effect.",
            chart(
                "bars",
                "Share of each sort of source word",
                ("share of", "source words", "%", "low", "high"),
                [
                    (what, f"{sort}, {named(kind)}", *interval(cell, 100))
                    for kind, each in kinds.items()
                    for what, cells in each.get("share", {}).items()
                    for sort, cell in cells.items()
                    if cell
                ],
            ),
            chart(
                "dots",
                "Rank correlation of weight with size among words of one sort",
                ("kind", "source words", "rank correlation", "low", "high"),
                [
                    (named(kind), sort, *interval(cell))
                    for kind, each in kinds.items()
                    for sort, cell in each.get("within", {}).items()
                    if cell
                ],
            ),
        ],
        method=f"{found['data'].capitalize()}, {found['queries']} queries of each sentence and layer. Rank "
        "correlations are those within a query, mean over queries and sentences, with 95 % intervals.",
        sources="Jain & Wallace 2019; Kobayashi et al. 2020.",
    )


def _chart(form: Literal["dots"], what: str, title: str, kinds: Json) -> Chart:
    """Values of a kind's columns; a column that nothing was measured of is left out."""
    rows = [
        (named(kind), name, *interval(cell))
        for kind, each in kinds.items()
        for name, cell in each[what].items()
        if cell
    ]
    title = f"rank correlation with {title}" if what in ("size", "loss") else title
    return chart(
        form,
        f"{title[0].upper()}{title[1:]}, by what orders the keys or takes the weights' place",
        ("kind", "weights", title, "low", "high"),
        rows,
    )


@measurement(WEIGHT_EFFECT_FILE, studies={"weight-effect": told})
def weight_effect(
    model: Subject,
    data: Annotated[Pairs, "source<TAB>target lines; sources are read"],
    sentences: Annotated[int, "use the first N pairs of --data"] = 100,
    queries: Annotated[int, "queries of each sentence and layer, drawn by chance"] = 2,
    seed: Annotated[int, "seed of the drawn heads and queries"] = 1,
) -> Json:
    """Rank correlation of weights with the effect of every key, by kind and layer, beside controls.

    In each layer and sentence a head and some of its queries are drawn. A key is hidden from that head and
    query alone, and the model runs again: the effect is |Δ log p| of the token that the query predicts; in
    the encoder, whose queries predict none, it is summed over all tokens. Correlations are those within a
    query, mean over queries. "replaced" puts other weights in the place of the head's own, for all queries,
    and gives what a token loses.
    """
    translator = model.translator
    layers = {kind: translator.config.sites[kind].n_layers for kind in translator.config.sites}
    found: dict[AttentionKind, list[list[Row]]] = {kind: [] for kind in layers}
    texts, done = [pair.source for pair in read_pairs(data)], 0
    with one_thread():
        for run in runs_of(translator, texts, sentences):
            random = np.random.default_rng([seed, zlib.crc32(run.source_text.encode())])
            made = Effects(translator, run)
            for kind, count in layers.items():
                rows = [_row(translator, run, made, kind, layer, queries, random) for layer in range(count)]
                found[kind].append(rows)
            done += 1
    return {
        "data": f"the model's own translations of {done} sentences of {shown(data)}",
        "sentences": done,
        "queries": queries,
        "kinds": {str(kind): _kind(rows) for kind, rows in found.items()},
    }


def _row(
    translator: Translator,
    run: Translation,
    made: Effects,
    kind: AttentionKind,
    layer: int,
    queries: int,
    random: np.random.Generator,
) -> Row:
    heads = translator.config.n_heads
    head, other = random.choice(heads, 2, replace=heads < 2).tolist()
    weights, mask = run.weights(kind, layer, head), run.mask(kind, layer, head)
    others = run.weights(kind, layer, other)
    seen = np.flatnonzero(mask.sum(1) >= LEAST)
    drawn = sorted(random.choice(seen, min(queries, len(seen)), replace=False).tolist()) if len(seen) else []
    norms = carried(translator.model, run, kind, layer, head).norms
    orders = weights, norms, others, permuted(weights, mask, random)  # as in ``ORDERS``
    size, loss = _effects(run, made, kind, (layer, head), drawn, mask)
    keys = _sorts(run.source_tokens) if kind is not AttentionKind.DECODER else None
    correlations = [
        [_mean([agreement(order[q], each[q], draws=0).value for q in drawn]) for order in orders]
        for each in (size, loss)
    ]
    maps = np.stack([uniform(mask), permuted(weights, mask, random), others, np.zeros_like(weights)])
    changes = rewired(translator, run, kind, layer, head, maps)
    return Row(
        correlations[0],
        correlations[1] if kind is not AttentionKind.ENCODER else [np.nan] * len(ORDERS),
        _shares(weights, size, drawn, keys),
        _within(weights, size, drawn, keys),
        (-changes.mean(1)).tolist(),
        np.abs(changes).mean(1).tolist(),
    )


def _effects(
    run: Translation,
    made: Effects,
    kind: AttentionKind,
    chosen: tuple[int, int],
    drawn: Sequence[int],
    mask: BoolArray,
) -> tuple[Array, Array]:
    """(queries, keys) |Δ log p| and −Δ log p of every cell of the drawn queries."""
    cuts = cells(run, kind, *chosen, "hidden", drawn)
    size = np.full(mask.shape, np.nan, dtype=np.float32)
    loss = size.copy()
    for cut, row in zip(cuts, made.of([(cut,) for cut in cuts]), strict=True):
        assert cut.query is not None
        place = cut.query, cut.keys[0]
        if kind is AttentionKind.ENCODER:
            size[place] = float(row.abs().sum())
        else:
            loss[place] = -float(row[cut.query])
            size[place] = abs(loss[place])
    return size, loss


def _sorts(tokens: Sequence[str]) -> Array:
    """(source,) the place in ``SORTS`` of each token's word."""
    found = np.full(len(tokens), SORTS.index("other"))
    for word in reading_groups(tokens):
        if not is_special(word.text) and any(map(str.isalnum, word.text)):
            sort = "content" if is_content(word.text, SOURCE_LANGUAGES) else "function"
            found[word.start : word.stop] = SORTS.index(sort)
    return found


def _shares(weights: Array, size: Array, drawn: Sequence[int], sorts: Array | None) -> list[float]:
    if sorts is None or not drawn:
        return [np.nan] * (3 * len(SORTS))
    rows = [np.ones(len(sorts)), weights[drawn].mean(0), np.nan]
    total = size[drawn].sum(1, keepdims=True)
    rows[2] = (size[drawn] / np.maximum(total, 1e-12)).mean(0)
    rows[0] = rows[0] / len(sorts)
    return [float(row[sorts == sort].sum()) for row in rows for sort in range(len(SORTS))]


def _within(weights: Array, size: Array, drawn: Sequence[int], sorts: Array | None) -> list[float]:
    """Correlations among the content words and among the function words of each query."""
    if sorts is None:
        return [np.nan, np.nan]
    return [
        _mean([agreement(weights[q, sorts == sort], size[q, sorts == sort], draws=0).value for q in drawn])
        for sort in (0, 1)
    ]


def _mean(values: Sequence[float]) -> float:
    """Mean of the numbers among them."""
    known = [value for value in values if value == value]
    return float(np.mean(known)) if known else np.nan


def _kind(rows: list[list[Row]]) -> Json:
    """Summary of one kind; ``rows`` are sentences × layers."""
    fields = get_type_hints(Row)
    tables = {name: np.array([[getattr(row, name) for row in each] for each in rows]) for name in fields}
    found: Json = {"layers": [_named(tables["size"][:, layer], ORDERS) for layer in range(len(rows[0]))]}
    every = {name: _mean_of(table) for name, table in tables.items()}  # (sentences, columns)
    found |= {name: _named(every[name], ORDERS) for name in ("size", "loss")}
    found |= {name: _named(every[name], REPLACED) for name in ("replaced", "moved")}
    if np.isfinite(every["share"]).any():
        columns = np.split(every["share"], 3, axis=1)
        found["share"] = {
            name: _named(part, SORTS)
            for name, part in zip(("keys", "weight", "effect"), columns, strict=True)
        }
        found["within"] = _named(every["within"], SORTS[:2])
    return found


def _mean_of(table: Floats) -> Floats:
    """(sentences, columns) mean over the layers that have a number."""
    known = np.isfinite(table)
    count = known.sum(1)
    total = np.where(known, table, 0).sum(1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _named(table: Any, names: Sequence[str]) -> dict[str, Cell | None]:
    """The mean of each column over sentences that have one, with its interval; None without any."""
    return {name: _cell(column) for name, column in zip(names, table.T, strict=True)}


def _cell(column: Floats) -> Cell | None:
    known = column[np.isfinite(column)]
    if not len(known):
        return None
    draws = resamples(len(known)) @ known / len(known)
    return cell(float(known.mean()), draws)
