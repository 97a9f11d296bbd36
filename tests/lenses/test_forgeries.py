"""Every measure and picture a second time, by the formulas in NumPy; and what is forged must be noticed.

A row of `TABLE` has what the package gives, the same numbers from `plain.Plain`, a Transformer in float64, and
forgeries of what the package gives, each of which the comparison must refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from plain import SIDES, Doubles, Head, Plain, log_softmax, norm, softmax, turned, without
from random_models import random_model

import lenses
from lenses.circuits.sinks import sink
from lenses.heads import statistics
from lenses.heads.profile import FAR, Profiler
from lenses.heads.roles import strengths
from lenses.inside import logit_lens, spread
from lenses.measures import maps
from lenses.measures.rewired import uniform
from transformer import Capture, Window, interventions
from transformer.model.sites import AttentionKind
from transformer.runs.translator import Translator, load_translator
from transformer.text.function_words import is_content
from transformer.text.words import is_punctuation, is_special, readable, reading_groups
from transformer.trace.heads import output_projections

BUNDLED = Path(__file__).parents[2] / "assets" / "models" / "en-de"
MODELS = ("pre rotary", "pre shaw", "post t5", "en-de")
KINDS = ("encoder", "decoder", "cross")
LAYER, HEAD, STEP = 1, 1, 2
POINTS = 8



class Bench:
    """A model, a run of it, and the same run by the formulas."""

    def __init__(self, name: str, tokenizer) -> None:
        if name == "en-de":
            self.translator = load_translator(BUNDLED)
            texts = "The old house is not for sale.", "Das alte Haus ist nicht zum Verkauf."
        else:
            sizes = dict(zip(("norm", "positions"), name.split(), strict=True), vocab_size=tokenizer.vocab_size)
            self.translator = Translator(random_model(scale=0.6, output_bias=True, **sizes), tokenizer, name=name)
            texts = "one zebra three nine", "two one four"
        self.model = self.translator.model
        self.run = self.translator.force(*texts, capture=Capture(residual=True))
        self.plain, self.token = Plain(self.translator, self.run), self.run.target_ids[STEP]
        self.rival = next(int(each) for each in np.argsort(-self.plain.logits[STEP]) if each != self.token)
        self.direction = self.plain.embedding[self.token] - self.plain.embedding[self.rival]
        self.asked = STEP, self.token, self.rival

    def head(self, kind: str, layer: int = LAYER) -> Head:
        return self.plain.seen[kind, layer]

    def layers(self, kind: str) -> range:
        return range(self.run.config.sites[AttentionKind(kind)].n_layers)


@pytest.fixture(scope="module", params=MODELS)
def bench(request, tokenizer) -> Bench:
    return Bench(request.param, tokenizer)


# --- the second ways ----------------------------------------------------------------------------------------


def lengths(b: Bench, kind: str, head: int, biased: bool = False) -> Doubles:
    """(keys, d_model) x_j W_V W_O, with b_V inside or without."""
    found = b.head(kind).sources @ b.plain.matrix(kind, LAYER, "v", head)
    return (b.head(kind).value[head] if biased else found) @ b.plain.matrix(kind, LAYER, "out", head)


def plain_carried(b: Bench, kind: str) -> Doubles:
    sizes, w_o = norm(lengths(b, kind, HEAD)), b.plain.matrix(kind, LAYER, "out", HEAD)
    bias = b.head(kind).value[HEAD][0] @ w_o - lengths(b, kind, HEAD)[0]
    return np.vstack([b.head(kind).weights[HEAD] * sizes, sizes, 0 * sizes + norm(bias)])


def carried(b: Bench, kind: str, head: int = HEAD) -> Doubles:
    found = lenses.carried(b.model, b.run, kind, LAYER, head)
    return np.vstack([found.norms, found.values, 0 * found.values + found.bias])


def together(b: Bench, kind: str) -> list[Doubles]:
    heads = range(b.run.config.n_heads)
    return [b.head(kind).weights[head][:, :, None] * lengths(b, kind, head) for head in heads]


def in_order(parts: Iterable[tuple[Any, Any]]) -> list[float]:
    """Numbers of writers in an order of their names."""
    return [float(number) for _, number in sorted((str(tuple(writer)), number) for writer, number in parts)]


def attribution(b: Bench, step: int = STEP, against: int | None = -1) -> list[float]:
    against = b.rival if against == -1 else against
    found = lenses.attribution(b.model, b.run, step, b.token, against=against)
    return [found.total, *in_order(zip(found.writers, found.values, strict=True))]


def plain_attribution(b: Bench) -> list[float]:
    bias = b.plain.state.get("output_bias", np.zeros(len(b.plain.embedding)))
    found = {name: each @ b.direction for name, each in b.plain.written("decoder", STEP).items() if len(name) == 3}
    found["biases", None, None] += bias[b.token] - bias[b.rival]
    return [b.plain.logits[STEP, b.token] - b.plain.logits[STEP, b.rival], *in_order(found.items())]


def plain_keys(b: Bench, kind: str) -> Doubles:
    """(layers, heads, keys)"""
    name, heads = "cross_attention" if kind == "cross" else "self_attention", range(b.run.config.n_heads)
    found = b.plain.written("decoder", STEP)
    return np.array([[found[name, i, head, "keys"] @ b.direction for head in heads] for i in b.layers(kind)])


def plain_by_source(b: Bench) -> Doubles:
    found = np.zeros(len(b.plain.source))
    for number, (layer, name) in enumerate(b.plain.sublayers("decoder")):
        for head in range(b.run.config.n_heads) if name == "cross_attention" else ():
            place = b.head("cross", layer)
            value = place.sources @ b.plain.matrix("cross", layer, "v", head)
            parts = place.weights[head, STEP][:, None] * value @ b.plain.matrix("cross", layer, "out", head)
            found += np.array([b.plain.onward(each, "decoder", STEP, number) @ b.direction for each in parts])
    return found


def plain_scores(b: Bench, kind: str, query: int, key: int) -> Doubles:
    """(queries' writers, keys' writers); biases of W_Q and W_K belong to the first."""
    name = "cross_attention" if kind == "cross" else "self_attention"
    ends = []
    for which, side, at in (("q", SIDES[kind], query), ("k", "encoder" if kind == "cross" else SIDES[kind], key)):
        reader = (LAYER, name) if kind != "cross" or which == "q" else None
        found = b.plain.written(side, at, reader)
        sides = {each: part @ b.plain.matrix(kind, LAYER, which, HEAD) for each, part in found.items() if len(each) == 3}
        place = f"{SIDES[kind]}.layers.{LAYER}.{name}.{which}_proj.bias"
        sides["biases", None, None] += b.plain.state[place][HEAD * b.plain.size : (HEAD + 1) * b.plain.size]
        rows = np.stack([part for _, part in sorted((str(each), part) for each, part in sides.items())])
        if b.run.config.positions == "rotary" and kind != "cross":
            rows = turned(np.repeat(rows[:, None], at + 1, 1))[:, at]
        ends.append(rows)
    return ends[0] @ ends[1].T / np.sqrt(b.plain.size)


def score_parts(b: Bench, kind: str, head: int = HEAD, query: int = STEP, key: int = 1) -> Doubles:
    found = lenses.score_parts(b.model, b.run, (kind, LAYER, head), query, key)
    rows, columns = (np.argsort([str(tuple(each)) for each in side]) for side in (found.queries, found.keys))
    return found.values[rows][:, columns]


def effect(b: Bench, kind: str, head: int, way: Any) -> Doubles:
    step = STEP if kind == "encoder" else None
    return lenses.effect(b.translator, b.run, kind, LAYER, head, way, step=step, rows=[1, 2])[[1, 2]]


def plain_effect(b: Bench, kind: str, way: str, rows: Iterable[int] = (1, 2), on_all: bool = False) -> Doubles:
    mask, found = b.head(kind).mask, np.full(b.head(kind).mask.shape, np.nan)
    for row, key in np.argwhere(mask):
        if row in rows:
            moved = b.plain.effect(kind, (key,), way, LAYER, HEAD, row)
            found[row, key] = np.abs(moved).sum() if on_all else moved[STEP if kind == "encoder" else row]
    return found[list(rows)]


def effect_map(b: Bench, kind: str, head: int = HEAD) -> Doubles:
    window = Window(1, 3, 0, 2)
    found = maps.effect_in(b.translator, b.run, kind, LAYER, head, window)
    view = maps.effect_map(b.run.map(kind, LAYER, head, window), found)
    return np.stack([view.measured, view.weights])


def plain_effect_map(b: Bench, kind: str) -> Doubles:
    found = plain_effect(b, kind, "hidden", on_all=kind == "encoder")[:, :2]
    return np.stack([found, np.abs(found) / max(0.1, np.nanmax(np.abs(found)))])


def plain_on_difference(b: Bench, kind: str) -> Doubles:
    return np.array([
        (b.plain.forward(lambda *at: without(*at, kind, (key,), "hidden")) - b.plain.logits)[STEP] @ one
        for one in [np.eye(len(b.plain.embedding))[b.token] - np.eye(len(b.plain.embedding))[b.rival]]
        for key in range(len(b.plain.source))
    ])  # fmt: skip


def plain_words(b: Bench, kind: str, way: str, pieces: int | None = None) -> Doubles:
    words = [tuple(word.indices)[:pieces] for word in lenses.source_words(b.run)]
    return np.stack([b.plain.effect(kind, word, way) for word in words], 1)


def plain_rewired(b: Bench, kind: str) -> Doubles:
    def change(place, weights, value, mask):
        if place == (kind, LAYER):
            weights = weights.copy()
            weights[HEAD] = mask / mask.sum(-1, keepdims=True)
        return weights @ value

    return b.plain.log_probs(change=change) - b.plain.base


def saliency(b: Bench, integrated: bool) -> Doubles:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lenses.measures.gradients.POINTS", POINTS)
        found = lenses.saliency(b.translator, b.run, STEP, b.token, b.rival, integrated)
    return np.concatenate([found.source, found.prefix])


def slopes(b: Bench, share: float = 1.0) -> Doubles:
    """Change of z_A − z_B where every embedding is a share of itself, by the length of one."""
    found, small = [], 1e-5 * share
    for side, count in (("encoder", len(b.plain.source)), ("decoder", STEP + 1)):
        for place in range(count):
            ends = []
            for sign in (1, -1):
                scale = {"encoder": np.full(len(b.plain.source), share), "decoder": np.full(len(b.plain.target), share)}
                scale[side][place] += sign * small
                logits = b.plain.forward(scale=scale)[STEP]
                ends.append(logits[b.token] - logits[b.rival])
            found.append((ends[0] - ends[1]) / (2 * small))
    return np.array(found)


def plain_integral(b: Bench) -> Doubles:
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    thirds = (nodes + 1) / 2
    return sum(w / 2 * 3 * root**2 * slopes(b, root**3) for root, w in zip(thirds, weights, strict=True))


def shares(b: Bench, kind: str, layer: int = LAYER) -> Doubles:
    """(queries, inputs) ALTI: how much nearer each input brings what a block writes, in L1."""
    side, name = SIDES[kind], "cross_attention" if kind == "cross" else "self_attention"
    stream, _, update, whole = b.plain.seen[side, layer, name]
    place, sources = f"{side}.layers.{layer}.{name}_residual.norm", b.head(kind, layer).sources
    if b.plain.pre and kind != "cross":
        sources = b.plain.normed(place, stream, stream)
    weights = b.head(kind, layer).weights
    parts = sum(
        weights[head][:, :, None] * (sources @ b.plain.matrix(kind, layer, "v", head) @ b.plain.matrix(kind, layer, "out", head))
        for head in range(len(weights))
    )
    own = np.eye(len(stream))[:, :, None] * stream
    parts = np.concatenate([stream[:, None], parts], 1) if kind == "cross" else parts + own
    if not b.plain.pre:
        parts = b.plain.normed(place, parts, (stream + update)[:, None])
    near = np.maximum(0, np.abs(whole).sum(-1)[:, None] - np.abs(whole[:, None] - parts).sum(-1))
    return near / near.sum(-1, keepdims=True)


def product(b: Bench, block: Callable[[str, int], Doubles], first: int = 0) -> Doubles:
    """(steps, source and prefix) shares of all layers multiplied."""
    encoder, steps = np.eye(len(b.plain.source)), len(b.plain.target)
    for layer in b.layers("encoder")[first:]:
        encoder = block("encoder", layer) @ encoder
    joint = np.hstack([np.zeros((steps, len(encoder))), np.eye(steps)])
    for layer in b.layers("decoder"):
        joint, read = block("decoder", layer) @ joint, block("cross", layer)
        joint = read[:, :1] * joint + np.hstack([read[:, 1:] @ encoder, np.zeros((steps, steps))])
    return joint


def half(b: Bench, kind: str, layer: int, own: float = 0.5) -> Doubles:
    """A block of rollout: half of the residual, half of the mean weights."""
    mean = (1 - own) * b.head(kind, layer).weights.mean(0)
    return np.hstack([np.full((len(mean), 1), own), mean]) if kind == "cross" else mean + own * np.eye(len(mean))


def plain_zeroing(b: Bench, kind: str) -> Doubles:
    whole, found = b.plain.seen[SIDES[kind], LAYER, "feed_forward"][3], []
    for key in range(len(b.head(kind).sources)):
        seen: dict[Any, Any] = {}
        b.plain.forward(lambda *at, key=key: without(*at, kind, (key,), "zeroed", LAYER), seen=seen)
        changed = seen[SIDES[kind], LAYER, "feed_forward"][3]
        found.append(1 - (whole * changed).sum(-1) / norm(whole) / norm(changed))
    return np.stack(found, 1)


def of_rows(b: Bench, kind: str, head: int = HEAD) -> Doubles:
    rows = statistics.HeadsOfKind.of(b.run, AttentionKind(kind), output_projections(b.model)).rows
    return np.stack([rows[name][LAYER, head] for name in sorted(rows)])


def plain_rows(b: Bench, kind: str, layer: int = LAYER, head: int = HEAD) -> dict[str, list[float]]:
    """Every statistic of every row, from the definitions."""
    keys, found = b.run.labels(kind).keys, {}
    words = [number for number, group in enumerate(reading_groups(keys)) for _ in group.indices]
    texts = [group.text for group in reading_groups(keys) for _ in group.indices]
    list_of = statistics.FUNCTION_WORDS["decoder" if kind == "decoder" else "encoder"]
    columns = {
        "eos_mass": [key == "</s>" for key in keys],
        "special_mass": [is_special(key) for key in keys],
        "punctuation_mass": [is_punctuation(readable(key)) for key in keys],
        "content_mass": [is_content(text, list_of) and not is_special(text) for text in texts],
    }
    last = max(place for place, key in enumerate(keys) if not is_special(key))
    place = b.head(kind, layer)
    written = norm(place.output[head] @ b.plain.matrix(kind, layer, "out", head))
    for row, (weights, mask) in enumerate(zip(place.weights[head], place.mask, strict=True)):
        best, seen = int(weights.argmax()), weights[mask & (weights > 0)]
        values = {"first": best == 0, "first_mass": weights[0], "peak": weights.max(), "contribution": written[row]}
        for name, key in (("previous", row - 1), ("same", row), ("next", row + 1)):
            there = 0 <= key < len(keys) and mask[key]
            values |= {name: best == key if there else np.nan, f"{name}_mass": weights[key] if there else np.nan}
        values |= {name: weights @ column for name, column in columns.items()}
        values["content_chance"] = np.mean(np.array(columns["content_mass"])[mask])
        values["entropy"] = -(seen * np.log(seen)).sum() / np.log(max(2, mask.sum()))
        values["mean_distance"] = sum(weight * abs(row - key) for key, weight in enumerate(weights))
        if kind != "decoder":
            values["last"] = best == last
        if kind != "cross":
            values["same_word"] = words[best] == words[row]
        for name, value in values.items():
            found.setdefault(name, []).append(float(value) if mask.sum() > 1 else np.nan)
    return found


def in_row(b: Bench, kind: str, x: Doubles, name: str, change: Callable[[Doubles], Doubles]) -> Doubles:
    at = sorted(plain_rows(b, kind)).index(name)
    return np.vstack([x[:at], change(x[at])[None], x[at + 1 :]])


def plain_mean(b: Bench, kind: str, name: str) -> Doubles:
    rows = [[plain_rows(b, kind, i, head)[name] for head in range(b.run.config.n_heads)] for i in b.layers(kind)]
    return np.nanmean(rows, -1)


def means(b: Bench, kind: str) -> dict[str, Doubles]:
    return statistics.sentence_totals(b.run, AttentionKind(kind)).means()


def plain_roles(b: Bench, kind: str) -> Doubles:
    mean = {name: np.nanmean(rows) for name, rows in plain_rows(b, kind).items() if not np.isnan(rows).all()}
    found = {"previous token": mean["previous"] / 0.5, "first or last": max(mean["first"], mean.get("last", 0)) / 0.5}
    found |= {"next token": mean.get("next", 0) / 0.5}
    found |= {"sink": (mean["special_mass"] + mean["punctuation_mass"]) / 0.5}
    found |= {"content": mean["content_mass"] / mean["content_chance"] * 3 / 4}
    found |= {"alignment": 0.0} if kind == "cross" else {"same word": mean["same_word"] / 0.5}
    return np.array([found[name] for name in sorted(found)])


def distances(b: Bench, kind: str, head: int = HEAD) -> Doubles:
    profiler, labels = Profiler(len(b.layers(kind)), b.run.config.n_heads), b.run.labels(kind)
    profiler.add(statistics.HeadsOfKind.of(b.run, AttentionKind(kind)), labels.queries, labels.keys)
    found = profiler.profile({}, np.zeros(0), {})
    return np.stack([found.distances[LAYER, head], found.chance[LAYER]])


def plain_distances(b: Bench, kind: str) -> Doubles:
    place, found = b.head(kind), np.zeros((2, 2 * FAR + 1))
    for row, key in np.argwhere(place.mask):
        if (count := place.mask[row].sum()) > 1:
            found[:, row - key + FAR] += place.weights[HEAD, row, key], 1 / count
    return found / found.sum(1, keepdims=True)


def lens(b: Bench, kind: str, step: int = STEP) -> list[list[float]]:
    rows, _ = logit_lens.logit_lens(b.model, b.run, step, 3)
    return [
        [row.chosen, 1 / row.rank, *(each.probability for each in row.best), *(e.token_id / 1e4 for e in row.best)]
        for row in rows
    ]


def plain_lens(b: Bench, kind: str) -> list[list[float]]:
    found, chosen = [], b.plain.target[STEP]
    for layer in range(-1, len(b.layers("decoder"))):
        stream = b.plain.seen["decoder", "input"] if layer < 0 else b.plain.seen["decoder", layer, "feed_forward"][3]
        stream = b.plain.normed("decoder.final_norm", stream[STEP]) if b.plain.pre else stream[STEP]
        p = softmax(stream @ b.plain.embedding.T + b.plain.state.get("output_bias", 0))
        best = np.argsort(-p, kind="stable")[:3]
        found.append([p[chosen], 1 / (1 + (p > p[chosen]).sum()), *p[best], *(best / 1e4)])
    return found


def resting(b: Bench, kind: str, head: int = HEAD) -> list[float]:
    found = sink(b.translator, [b.run], (AttentionKind(kind), LAYER, head))
    return [found.weight, found.value, found.stream, found.lost]


def plain_resting(b: Bench, kind: str) -> list[float]:
    place, at = b.head(kind), 0 if kind == "decoder" else len(b.plain.source) - 1
    side, name = ("encoder", "feed_forward") if kind == "cross" else (kind, "self_attention")
    layer, which = (len(b.layers(side)) - 1, 3) if kind == "cross" else (LAYER, 0)
    sizes = norm(lengths(b, kind, HEAD, biased=True)), norm(b.plain.seen[side, layer, name][which])
    ratios = [each[at] / np.delete(each, at).mean() for each in sizes]
    rests = place.weights[HEAD, :, at][place.mask.sum(1) > 1].mean()
    rows = [row for row, mask in enumerate(place.mask) if mask.sum() > 1]

    def change(where, weights, value, mask):
        if where == (kind, LAYER):
            weights = weights.copy()
            weights[HEAD, rows, at] = 0
            weights[HEAD] /= weights[HEAD].sum(-1, keepdims=True)
        return weights @ value

    return [rests, *ratios, (b.plain.base - b.plain.log_probs(change=change)).mean()]


def products(b: Bench, kind: str, head: int = HEAD) -> list[float]:
    found = spread.product_spread(b.run.attention.layer(kind, LAYER), head)
    return [found.products, found.divided, found.query, found.key]


def plain_products(b: Bench, kind: str) -> list[float]:
    place = b.head(kind)
    every = [q @ k for q, row in zip(place.query[HEAD], place.mask, strict=True) for k in place.key[HEAD][row]]
    return [np.var(every), np.var(every) / b.plain.size, place.query[HEAD].var(), place.key[HEAD].var()]


def compared(b: Bench, kind: str, turned: bool = False) -> Doubles:
    changed = b.translator.force(b.run.source_text, b.run.text, interventions=[interventions.hide(1)])
    found = lenses.compare_runs(*((changed, b.run) if turned else (b.run, changed)))
    return np.stack([found.delta_log_p, found.kl])


def plain_compared(b: Bench, kind: str) -> Doubles:
    p, q = (log_softmax(b.plain.forward(each)) for each in (None, lambda *at: without(*at, "cross", (1,), "hidden")))
    return np.stack([(q - p)[np.arange(len(p)), b.plain.target], (np.exp(p) * (p - q)).sum(1)])


def ranks(values: Doubles) -> Doubles:
    return np.argsort(np.argsort(values.ravel()))


# --- the table ----------------------------------------------------------------------------------------------


def neighbours(x: Doubles, axis: int = -1) -> Doubles:
    """Exchanges the two neighbours that differ most."""
    x = np.moveaxis(x.copy(), axis, -1)
    at = np.unravel_index(np.nanargmax(np.abs(np.diff(x, axis=-1))), np.diff(x, axis=-1).shape)
    here, there = at, (*at[:-1], at[-1] + 1)
    x[here], x[there] = x[there], x[here]
    return np.moveaxis(x, -1, axis)


def one_cell(x: Doubles) -> Doubles:
    x, known = x.copy(), np.argwhere(np.isfinite(x))
    x[tuple(known[len(known) // 2])] += 0.02 * np.nanmax(np.abs(x))
    return x


Forge = Callable[[Bench, str, Doubles], Any]
CELL, EXCHANGED, ROWS = "one cell altered", "neighbours exchanged", "rows exchanged"
REVERSED, SIGN, SCALED, OTHER = "reversed", "sign turned", "scaled by √d", "of another head"
COMMON: dict[str, Forge] = {
    CELL: lambda b, k, x: one_cell(x),
    EXCHANGED: lambda b, k, x: neighbours(x),
    ROWS: lambda b, k, x: neighbours(x, 0),
    REVERSED: lambda b, k, x: np.flip(x, -1),
    SIGN: lambda b, k, x: -x,
    SCALED: lambda b, k, x: x * np.sqrt(b.plain.size),
}
ORDER = (CELL, EXCHANGED, REVERSED)


class Row(NamedTuple):
    """A measure: what the package gives, the same by the formulas, and what must be noticed."""

    result: Callable[..., Any]  # of a bench, a kind, and for some a head
    plain: Callable[[Bench, str], Any]
    common: tuple[str, ...] = ORDER
    forged: dict[str, Forge] = {}  # noqa: RUF012
    kinds: tuple[str, ...] = KINDS
    limit: float = 1e-4  # share of the largest number

    def forge(self, name: str, b: Bench, kind: str, result: Doubles) -> Doubles:
        """What somebody would draw in the place of the result."""
        if name == OTHER:
            return np.asarray(self.result(b, kind, 0), float)
        return np.asarray((COMMON | self.forged)[name](b, kind, result), float)


def effects(way: str, other: str) -> Row:
    forged: dict[str, Forge] = {f"{other} instead": lambda b, k, x: effect(b, k, HEAD, other)}
    common = (*ORDER, SIGN, OTHER)
    return Row(lambda b, k, h=HEAD: effect(b, k, h, way), lambda b, k: plain_effect(b, k, way), common, forged, limit=1e-2)


def roots(b: Bench) -> float:
    return float(np.sqrt(b.plain.size))


SELF, CROSS, DECODER = ("encoder", "decoder"), ("cross",), ("decoder", "cross")
TABLE: dict[str, Row] = {
    "weights": Row(
        lambda b, k, h=HEAD: b.run.map(k, LAYER, h).weights,
        lambda b, k: b.head(k).weights[HEAD],
        (*ORDER, ROWS, OTHER),
        {
            "not divided by √d": lambda b, k, x: x ** roots(b) / (x ** roots(b)).sum(1, keepdims=True),
            "normalised over the queries": lambda b, k, x: x / x.sum(0),
        },
    ),
    "masked weights": Row(
        lambda b, k: b.run.map(k, 0, HEAD).weights,
        lambda b, k: b.head(k, 0).weights[HEAD],
        (),
        {
            "the mask forgotten": lambda b, k, x: softmax(b.head(k, 0).scores[HEAD]),
            "the mask after the softmax": lambda b, k, x: np.tril(softmax(b.head(k, 0).scores[HEAD])),
            "a mask of zeros": lambda b, k, x: softmax(np.tril(b.head(k, 0).scores[HEAD])),
        },
        ("decoder",),
    ),
    "scores": Row(
        lambda b, k, h=HEAD: b.run.attention.scores(k, LAYER, h),
        lambda b, k: b.head(k).scores[HEAD],
        (*ORDER, ROWS, SIGN, SCALED, OTHER),
    ),
    "carried": Row(
        carried,
        plain_carried,
        (*ORDER, OTHER),
        {
            "weights squared": lambda b, k, x: np.vstack([x[:-2] * b.head(k).weights[HEAD], x[-2:]]),
            "b_V inside": lambda b, k, x: np.vstack(
                [b.head(k).weights[HEAD] * norm(lengths(b, k, HEAD, biased=True)), x[-2:]]
            ),
        },
    ),
    "shares carried": Row(
        lambda b, k: maps.carried_map(
            b.run.map(k, LAYER, HEAD), lenses.carried(b.model, b.run, k, LAYER, HEAD)
        ).weights,
        lambda b, k: plain_carried(b, k)[:-2] / plain_carried(b, k)[:-2].sum(1, keepdims=True),
        ORDER,
        {"over the queries": lambda b, k, x: plain_carried(b, k)[:-2] / plain_carried(b, k)[:-2].sum(0)},
    ),
    "carried together": Row(
        lambda b, k: lenses.carried_together(b.model, b.run, k, LAYER),
        lambda b, k: norm(sum(together(b, k))),
        ORDER,
        {"lengths added": lambda b, k, x: sum(norm(each) for each in together(b, k))},
    ),
    "attribution": Row(
        lambda b, k: attribution(b),
        lambda b, k: plain_attribution(b),
        (*ORDER, SIGN),
        {
            "one token alone": lambda b, k, x: attribution(b, against=None),
            "the step before": lambda b, k, x: attribution(b, STEP - 1),
        },
        CROSS,
    ),
    "attribution by key": Row(
        lambda b, k: lenses.attribution(b.model, b.run, *b.asked).keys[AttentionKind(k)],
        lambda b, k: plain_keys(b, k),
        (CELL, EXCHANGED, SIGN),
        {
            "layers reversed": lambda b, k, x: np.flip(x, 0),
            "heads exchanged": lambda b, k, x: neighbours(x, 1),
        },
        DECODER,
    ),
    "by source": Row(
        lambda b, k: lenses.by_source(b.model, b.run, *b.asked),
        lambda b, k: plain_by_source(b),
        (*ORDER, SIGN),
        {"b_V inside": lambda b, k, x: plain_keys(b, k).sum((0, 1))},
        CROSS,
    ),
    "score parts": Row(
        score_parts,
        lambda b, k: plain_scores(b, k, STEP, 1),
        (*ORDER, ROWS, SIGN, SCALED, OTHER),
        {"of another key": lambda b, k, x: score_parts(b, k, key=0)},
    ),
    "effect hidden": effects("hidden", "zeroed"),
    "effect zeroed": effects("zeroed", "mean"),
    "effect mean": effects("mean", "hidden"),
    "map of effects": Row(
        effect_map,
        plain_effect_map,
        (*ORDER, OTHER),
        {"shares of the row": lambda b, k, x: [x[0], np.abs(x[0]) / np.abs(x[0]).sum(1, keepdims=True)]},
        limit=1e-2,
    ),
    "on difference": Row(
        lambda b, k: lenses.on_difference(b.translator, b.run, STEP, b.rival),
        plain_on_difference,
        (*ORDER, SIGN),
        {"of log p alone": lambda b, k, x: [b.plain.effect(k, (key,), "hidden")[STEP] for key in range(len(x))]},
        CROSS,
        2e-3,
    ),
    "left out": Row(
        lambda b, k: lenses.Effects(b.translator, b.run).left_out([1]),
        lambda b, k: b.plain.log_probs(source=[*b.plain.source[:1], *b.plain.source[2:]]) - b.plain.base,
        (*ORDER, SIGN),
        {"hidden instead": lambda b, k, x: b.plain.effect(k, (1,), "hidden")},
        CROSS,
        2e-3,
    ),
    "word effect": Row(
        lambda b, k: lenses.word_effect(b.translator, b.run, k, "mean"),
        lambda b, k: plain_words(b, k, "mean"),
        (*ORDER, ROWS, SIGN),
        {"of the first piece": lambda b, k, x: plain_words(b, k, "mean", 1)},
        ("encoder", "cross"),
        2e-3,
    ),
    "rewired": Row(
        lambda b, k, h=HEAD: lenses.rewired(b.translator, b.run, k, LAYER, h, uniform(b.run.mask(k, LAYER, h))[None])[0],
        plain_rewired,
        (*ORDER, SIGN, OTHER),
        limit=2e-3,
    ),
    "gradient × input": Row(
        lambda b, k: saliency(b, integrated=False),
        lambda b, k: slopes(b),
        (*ORDER, SIGN),
        {"integrated instead": lambda b, k, x: saliency(b, integrated=True)},
        CROSS,
        5e-3,
    ),
    "integrated gradients": Row(
        lambda b, k: saliency(b, integrated=True), lambda b, k: plain_integral(b), (*ORDER, SIGN), {}, CROSS, 5e-3
    ),
    "shares of a block": Row(
        lambda b, k: lenses.alti(b.model, b.run).blocks[AttentionKind(k)][LAYER],
        shares,
        (*ORDER, ROWS),
        {
            "squares": lambda b, k, x: x**2 / (x**2).sum(1, keepdims=True),
            "of another layer": lambda b, k, x: shares(b, k, 0),
        },
    ),
    "alti": Row(
        lambda b, k: np.hstack([(found := lenses.alti(b.model, b.run)).source, found.prefix]),
        lambda b, k: product(b, lambda kind, layer: shares(b, kind, layer)),
        (*ORDER, ROWS),
        {
            "a layer forgotten": lambda b, k, x: product(b, lambda kind, layer: shares(b, kind, layer), 1),
            "prefix first": lambda b, k, x: np.roll(x, len(x), 1),
        },
        CROSS,
    ),
    "rollout": Row(
        lambda b, k: np.hstack(lenses.rollout(b.run)),
        lambda b, k: product(b, lambda kind, layer: half(b, kind, layer)),
        (*ORDER, ROWS),
        {"less residual": lambda b, k, x: product(b, lambda kind, layer: half(b, kind, layer, 0.4))},
        CROSS,
    ),
    "value zeroing": Row(
        lambda b, k: lenses.value_zeroing(b.model, b.run, k, LAYER),
        plain_zeroing,
        (*ORDER, ROWS),
        {"shares of the row": lambda b, k, x: x / x.sum(1, keepdims=True)},
        limit=1e-3,
    ),
    "agreement": Row(
        lambda b, k: [lenses.agreement(b.head(k).weights[HEAD], b.head(k).scores[HEAD], draws=0).value],
        lambda b, k: [np.corrcoef(*(ranks(each[HEAD]) for each in (b.head(k).weights, b.head(k).scores)))[0, 1]],
        (CELL, SIGN),
        {"of the numbers": lambda b, k, x: [np.corrcoef(b.head(k).weights[HEAD].ravel(), b.head(k).scores[HEAD].ravel())[0, 1]]},
        CROSS,
    ),
    "statistics of rows": Row(
        of_rows,
        lambda b, k: [rows for _, rows in sorted(plain_rows(b, k).items())],
        (*ORDER, ROWS, OTHER),
        {
            "entropy in nats": lambda b, k, x: in_row(b, k, x, "entropy", lambda row: row * np.log(5)),
            "distances with their sign": lambda b, k, x: in_row(b, k, x, "mean_distance", np.negative),
        },
    ),
    "mean entropy": Row(
        lambda b, k: means(b, k)["entropy"],
        lambda b, k: plain_mean(b, k, "entropy"),
        (CELL, EXCHANGED, ROWS),
    ),
    "roles": Row(
        lambda b, k, h=HEAD: [each[LAYER, h] for _, each in sorted(strengths(means(b, k), AttentionKind(k)).items())],
        plain_roles,
        (CELL, EXCHANGED),
    ),
    "distances": Row(distances, plain_distances, (*ORDER, OTHER)),
    "logit lens": Row(
        lens,
        plain_lens,
        (CELL, EXCHANGED, ROWS),
        {"of another step": lambda b, k, x: lens(b, k, STEP - 1)},
        CROSS,
    ),
    "sink": Row(resting, plain_resting, (CELL, EXCHANGED, OTHER)),
    "spread of q·k": Row(
        products,
        plain_products,
        (CELL, EXCHANGED, OTHER),
        {"divided by √d": lambda b, k, x: [x[0], x[0] / roots(b), *x[2:]]},
    ),
    "two runs": Row(
        compared,
        plain_compared,
        (*ORDER, ROWS, SIGN),
        {"KL turned round": lambda b, k, x: compared(b, k, turned=True) * [[-1], [1]]},
        CROSS,
        2e-3,
    ),
}
CASES = [(name, kind) for name, row in TABLE.items() for kind in row.kinds]


def same(drawn: Doubles, expected: Doubles, limit: float) -> bool:
    """Whether all numbers agree, and none is one in one of the two alone."""
    if drawn.shape != expected.shape or (np.isfinite(drawn) != np.isfinite(expected)).any():
        return False
    return bool(np.nanmax(np.abs(drawn - expected)) <= limit * np.nanmax(np.abs(expected)))


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_formulas_give_the_same_and_notice_what_is_forged(bench: Bench, name: str, kind: str):
    row = TABLE[name]
    result, plain = (np.asarray(way(bench, kind), float) for way in (row.result, row.plain))
    np.testing.assert_allclose(result, plain, rtol=0, atol=row.limit * np.nanmax(np.abs(plain)))
    forged = {each: row.forge(each, bench, kind, result) for each in (*row.common, *row.forged)}
    assert [each for each, drawn in forged.items() if same(drawn, plain, row.limit)] == []


def test_every_measure_has_a_row():
    source = Path(__file__).read_text()
    assert [name for name in lenses.__all__ if name[0].islower() and f"lenses.{name}(" not in source] == []
