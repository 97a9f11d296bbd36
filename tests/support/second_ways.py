"""Every measure by its formula, from the arrays of `plain.Plain`, for one layer, head and step of a
bench."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from plain import SIDES, Doubles, Head, Plain, log_softmax, norm, softmax, turned, without
from random_models import random_model

from explorer import lenses
from explorer.lenses.heads import statistics
from explorer.lenses.heads.survey import FAR
from explorer.lenses.words.groups import CONTENT, reading_groups, sorts_of
from transformer import Capture
from transformer.config import AttentionKind
from transformer.text.words import is_punctuation, is_special, readable
from transformer.translator import Translator, load_translator

BUNDLED = Path(__file__).parents[2] / "assets" / "models" / "en-de"
LAYER, HEAD, STEP = 1, 1, 2
EN_DE = "The old house is not for sale.", "Das alte Haus ist nicht zum Verkauf."


class Bench:
    """A model, a run of it, and the same run by the formulas."""

    def __init__(self, name: str, tokenizer, texts: tuple[str, str] = EN_DE) -> None:
        if name == "en-de":
            self.translator = load_translator(BUNDLED)
        else:
            sizes = dict(
                zip(("norm", "positions"), name.split(), strict=True),
                vocab_size=tokenizer.vocab_size,
            )
            self.translator = Translator(
                random_model(scale=0.6, output_bias=True, **sizes), tokenizer, name=name
            )
            texts = "one zebra three nine", "two one four"
        self.model = self.translator.model
        self.run = self.translator.force(*texts, capture=Capture(residual=True))
        self.plain = Plain(self.translator, self.run)
        self.token = self.run.target_ids[STEP]
        self.rival = next(
            int(each) for each in np.argsort(-self.plain.logits[STEP]) if each != self.token
        )
        self.direction = self.plain.embedding[self.token] - self.plain.embedding[self.rival]
        self.asked = STEP, self.token, self.rival

    def head(self, kind: str, layer: int = LAYER) -> Head:
        return self.plain.seen[kind, layer]

    def layers(self, kind: str) -> range:
        return range(self.run.config.sites[AttentionKind(kind)].n_layers)


def lengths(b: Bench, kind: str, head: int, biased: bool = False) -> Doubles:
    """(keys, d_model) x_j W_V W_O, with b_V inside or without."""
    found = b.head(kind).sources @ b.plain.matrix(kind, LAYER, "v", head)
    return (b.head(kind).value[head] if biased else found) @ b.plain.matrix(
        kind, LAYER, "out", head
    )


def carried(b: Bench, kind: str) -> Doubles:
    sizes = norm(lengths(b, kind, HEAD))
    w_o = b.plain.matrix(kind, LAYER, "out", HEAD)
    bias = b.head(kind).value[HEAD][0] @ w_o - lengths(b, kind, HEAD)[0]
    return np.vstack([b.head(kind).weights[HEAD] * sizes, sizes, 0 * sizes + norm(bias)])


def together(b: Bench, kind: str) -> list[Doubles]:
    heads = range(b.run.config.n_heads)
    return [b.head(kind).weights[head][:, :, None] * lengths(b, kind, head) for head in heads]


def in_order(parts: Iterable[tuple[Any, Any]]) -> list[float]:
    """Numbers of writers in an order of their names."""
    return [
        float(number)
        for _, number in sorted((str(tuple(writer)), number) for writer, number in parts)
    ]


def attribution(b: Bench) -> list[float]:
    found = attribution_parts(b)
    return [b.plain.logits[STEP, b.token] - b.plain.logits[STEP, b.rival], *in_order(found.items())]


def attribution_parts(b: Bench) -> dict[tuple[Any, ...], float]:
    """What each writer adds to the difference of two logits."""
    bias = b.plain.state.get("output_bias", np.zeros(len(b.plain.embedding)))
    found = {
        name: each @ b.direction
        for name, each in b.plain.written("decoder", STEP).items()
        if len(name) == 3
    }
    found["biases", None, None] += bias[b.token] - bias[b.rival]
    return found


def keys(b: Bench, kind: str) -> Doubles:
    """(layers, heads, keys)"""
    name = "cross_attention" if kind == "cross" else "self_attention"
    heads = range(b.run.config.n_heads)
    found = b.plain.written("decoder", STEP)
    return np.array(
        [[found[name, i, head, "keys"] @ b.direction for head in heads] for i in b.layers(kind)]
    )


def by_key(b: Bench) -> Doubles:
    found = np.zeros(len(b.plain.source))
    for number, (layer, name) in enumerate(b.plain.sublayers("decoder")):
        for head in range(b.run.config.n_heads) if name == "cross_attention" else ():
            place = b.head("cross", layer)
            value = place.sources @ b.plain.matrix("cross", layer, "v", head)
            parts = (
                place.weights[head, STEP][:, None]
                * value
                @ b.plain.matrix("cross", layer, "out", head)
            )
            found += np.array(
                [b.plain.onward(part, "decoder", STEP, number) @ b.direction for part in parts]
            )
    return found


def scores(b: Bench, kind: str, query: int, key: int) -> Doubles:
    """(queries' writers, keys' writers); biases of W_Q and W_K belong to the first."""
    name = "cross_attention" if kind == "cross" else "self_attention"
    ends = []
    for which, side, at in (
        ("q", SIDES[kind], query),
        ("k", "encoder" if kind == "cross" else SIDES[kind], key),
    ):
        reader = (LAYER, name) if kind != "cross" or which == "q" else None
        found = b.plain.written(side, at, reader)
        sides = {
            each: part @ b.plain.matrix(kind, LAYER, which, HEAD)
            for each, part in found.items()
            if len(each) == 3
        }
        place = f"{SIDES[kind]}.layers.{LAYER}.{name}.{which}_proj.bias"
        sides["biases", None, None] += b.plain.state[place][
            HEAD * b.plain.size : (HEAD + 1) * b.plain.size
        ]
        rows = np.stack(
            [part for _, part in sorted((str(each), part) for each, part in sides.items())]
        )
        if b.run.config.positions == "rotary" and kind != "cross":
            rows = turned(np.repeat(rows[:, None], at + 1, 1))[:, at]
        ends.append(rows)
    return ends[0] @ ends[1].T / np.sqrt(b.plain.size)


def effect(
    b: Bench, kind: str, way: str, rows: Iterable[int] = (1, 2), on_all: bool = False
) -> Doubles:
    mask = b.head(kind).mask
    found = np.full(b.head(kind).mask.shape, np.nan)
    for row, key in np.argwhere(mask):
        if row in rows:
            moved = b.plain.effect(kind, (key,), way, LAYER, HEAD, row)
            found[row, key] = (
                np.abs(moved).sum() if on_all else moved[STEP if kind == "encoder" else row]
            )
    return found[list(rows)]


def effect_map(b: Bench, kind: str) -> Doubles:
    found = effect(b, kind, "hidden", on_all=kind == "encoder")
    return np.stack([found, np.nan_to_num(np.abs(found)) / max(0.1, np.nanmax(np.abs(found)))])


def on_difference(b: Bench, kind: str) -> Doubles:
    found = []
    for key in range(len(b.plain.source)):
        moved = (
            b.plain.forward(partial(without, kind=kind, keys=(key,), way="hidden")) - b.plain.logits
        )
        found.append(moved[STEP, b.token] - moved[STEP, b.rival])
    return np.array(found)


def words(b: Bench, kind: str, way: str) -> Doubles:
    words = [tuple(word.indices) for word in lenses.key_words(b.run)]
    return np.stack([b.plain.effect(kind, word, way) for word in words], 1)


def uniform(mask: np.ndarray) -> np.ndarray:
    """(queries, keys) the same weight on every key that a query sees."""
    return (mask / mask.sum(-1, keepdims=True)).astype(np.float32)


def rewired(b: Bench, kind: str) -> Doubles:
    def change(place, weights, value, mask):
        if place == (kind, LAYER):
            weights = weights.copy()
            weights[HEAD] = uniform(mask)
        return weights @ value

    return b.plain.log_probs(change=change) - b.plain.base


def shares(b: Bench, kind: str, layer: int = LAYER) -> Doubles:
    """(queries, inputs) ALTI: how much nearer each input brings what a block writes, in L1."""
    side = SIDES[kind]
    name = "cross_attention" if kind == "cross" else "self_attention"
    stream, _, update, whole = b.plain.seen[side, layer, name]
    place = f"{side}.layers.{layer}.{name}_residual.norm"
    sources = b.head(kind, layer).sources
    if b.plain.pre and kind != "cross":
        sources = b.plain.normed(place, stream, stream)
    weights = b.head(kind, layer).weights
    parts = sum(
        weights[head][:, :, None]
        * (
            sources
            @ b.plain.matrix(kind, layer, "v", head)
            @ b.plain.matrix(kind, layer, "out", head)
        )
        for head in range(len(weights))
    )
    own = np.eye(len(stream))[:, :, None] * stream
    parts = np.concatenate([stream[:, None], parts], 1) if kind == "cross" else parts + own
    if not b.plain.pre:
        parts = b.plain.normed(place, parts, (stream + update)[:, None])
    near = np.maximum(0, np.abs(whole).sum(-1)[:, None] - np.abs(whole[:, None] - parts).sum(-1))
    return near / near.sum(-1, keepdims=True)


def product(b: Bench, block: Callable[[str, int], Doubles]) -> Doubles:
    """(steps, source and prefix) shares of all layers multiplied."""
    encoder = np.eye(len(b.plain.source))
    steps = len(b.plain.target)
    for layer in b.layers("encoder"):
        encoder = block("encoder", layer) @ encoder
    joint = np.hstack([np.zeros((steps, len(encoder))), np.eye(steps)])
    for layer in b.layers("decoder"):
        joint = block("decoder", layer) @ joint
        read = block("cross", layer)
        joint = read[:, :1] * joint + np.hstack([read[:, 1:] @ encoder, np.zeros((steps, steps))])
    return joint


def zeroing(b: Bench, kind: str) -> Doubles:
    whole = b.plain.seen[SIDES[kind], LAYER, "feed_forward"][3]
    found = []
    for key in range(len(b.head(kind).sources)):
        seen: dict[Any, Any] = {}
        b.plain.forward(lambda *at, key=key: without(*at, kind, (key,), "zeroed", LAYER), seen=seen)
        changed = seen[SIDES[kind], LAYER, "feed_forward"][3]
        found.append(1 - (whole * changed).sum(-1) / norm(whole) / norm(changed))
    return np.stack(found, 1)


def statistics_of_rows(
    b: Bench, kind: str, layer: int = LAYER, head: int = HEAD
) -> dict[str, list[float]]:
    """Every statistic of every row, from the definitions."""
    keys = b.run.labels(kind).keys
    found = {}
    words = [number for number, group in enumerate(reading_groups(keys)) for _ in group.indices]
    groups = [group for group in reading_groups(keys) for _ in group.indices]
    list_of = statistics.FUNCTION_WORDS["decoder" if kind == "decoder" else "encoder"]
    columns = {
        "eos_mass": [is_special(key) and key == "</s>" for key in keys],
        "special_mass": [is_special(key) for key in keys],
        "punctuation_mass": [is_punctuation(readable(key)) for key in keys],
        "content_mass": [sort == CONTENT for sort in sorts_of(groups, list_of)],
    }
    last = max(place for place, key in enumerate(keys) if not is_special(key))
    place = b.head(kind, layer)
    written = norm(place.output[head] @ b.plain.matrix(kind, layer, "out", head))
    for row, (weights, mask) in enumerate(zip(place.weights[head], place.mask, strict=True)):
        best = int(weights.argmax())
        seen = weights[mask & (weights > 0)]
        values = {
            "first": best == 0,
            "first_mass": weights[0],
            "peak": weights.max(),
            "contribution": written[row],
        }
        for name, key in (("previous", row - 1), ("same", row), ("next", row + 1)):
            there = 0 <= key < len(keys) and mask[key]
            values |= {
                name: best == key if there else np.nan,
                f"{name}_mass": weights[key] if there else np.nan,
            }
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


def mean(b: Bench, kind: str, name: str) -> Doubles:
    rows = [
        [statistics_of_rows(b, kind, i, head)[name] for head in range(b.run.config.n_heads)]
        for i in b.layers(kind)
    ]
    return np.nanmean(rows, -1)


def roles(b: Bench, kind: str) -> Doubles:
    mean = {
        name: np.nanmean(rows)
        for name, rows in statistics_of_rows(b, kind).items()
        if not np.isnan(rows).all()
    }
    found = {
        "previous token": mean["previous"] / 0.5,
        "first or last": max(mean["first"], mean.get("last", 0)) / 0.5,
    }
    found |= {"next token": mean.get("next", 0) / 0.5}
    found |= {"sink": (mean["special_mass"] + mean["punctuation_mass"]) / 0.5}
    found |= {"content": mean["content_mass"] / mean["content_chance"] * 3 / 4}
    found |= {"alignment": 0.0} if kind == "cross" else {"same word": mean["same_word"] / 0.5}
    return np.array([found[name] for name in sorted(found)])


def distances(b: Bench, kind: str) -> Doubles:
    place = b.head(kind)
    found = np.zeros((2, 2 * FAR + 1))
    for row, key in np.argwhere(place.mask):
        if (count := place.mask[row].sum()) > 1:
            found[:, row - key + FAR] += place.weights[HEAD, row, key], 1 / count
    return found / found.sum(1, keepdims=True)


def lens(b: Bench, kind: str) -> list[list[float]]:
    found = []
    chosen = b.plain.target[STEP]
    for layer in range(-1, len(b.layers("decoder"))):
        stream = (
            b.plain.seen["decoder", "input"]
            if layer < 0
            else b.plain.seen["decoder", layer, "feed_forward"][3]
        )
        stream = b.plain.normed("decoder.final_norm", stream[STEP]) if b.plain.pre else stream[STEP]
        p = softmax(stream @ b.plain.embedding.T + b.plain.state.get("output_bias", 0))
        best = np.argsort(-p, kind="stable")[:3]
        found.append([p[chosen], 1 / (1 + (p > p[chosen]).sum()), *p[best], *(best / 1e4)])
    return found


def resting(b: Bench, kind: str) -> list[float]:
    place = b.head(kind)
    at = 0 if kind == "decoder" else len(b.plain.source) - 1
    side, name = ("encoder", "feed_forward") if kind == "cross" else (kind, "self_attention")
    layer, which = (len(b.layers(side)) - 1, 3) if kind == "cross" else (LAYER, 0)
    sizes = norm(lengths(b, kind, HEAD, biased=True)), norm(b.plain.seen[side, layer, name][which])
    ratios = [size[at] / np.delete(size, at).mean() for size in sizes]
    rests = place.weights[HEAD, :, at][place.mask.sum(1) > 1].mean()
    rows = [row for row, mask in enumerate(place.mask) if mask.sum() > 1]

    def change(where, weights, value, mask):
        if where == (kind, LAYER):
            weights = weights.copy()
            weights[HEAD, rows, at] = 0
            weights[HEAD] /= weights[HEAD].sum(-1, keepdims=True)
        return weights @ value

    return [rests, *ratios, (b.plain.base - b.plain.log_probs(change=change)).mean()]


def products(b: Bench, kind: str) -> list[float]:
    place = b.head(kind)
    every = [
        q @ k
        for q, row in zip(place.query[HEAD], place.mask, strict=True)
        for k in place.key[HEAD][row]
    ]
    return [
        np.var(every),
        np.var(every) / b.plain.size,
        place.query[HEAD].var(),
        place.key[HEAD].var(),
    ]


def compared(b: Bench, kind: str) -> Doubles:
    p, q = (
        log_softmax(b.plain.forward(each))
        for each in (None, lambda *at: without(*at, "cross", (0, 1, 2), "hidden"))
    )
    return np.stack([(q - p)[np.arange(len(p)), b.plain.target], (np.exp(p) * (p - q)).sum(1)])
