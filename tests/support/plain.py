"""A Transformer by the formulas in NumPy, float64: the second way of everything that is measured in
a run."""

from typing import Any, NamedTuple

import numpy as np

from transformer.run import Translation
from transformer.translator import Translator

Doubles = np.ndarray[Any, np.dtype[np.float64]]
SIDES = {"encoder": "encoder", "decoder": "decoder", "cross": "decoder"}
"""The stack of the queries of each kind."""


def softmax(scores: Doubles) -> Doubles:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def log_softmax(scores: Doubles) -> Doubles:
    return np.log(softmax(scores))


def norm(vectors: Doubles, axis: int = -1) -> Doubles:
    return np.sqrt((vectors**2).sum(axis))


class Plain:
    """A Transformer with LayerNorm and ReLU: sections 3.1 to 3.5, rotary positions, biases of
    scores."""

    def __init__(self, translator: Translator, run: Translation) -> None:
        self.config, self.run = translator.config, run
        state = translator.model.state_dict()
        self.state = {name: each.double().cpu().numpy() for name, each in state.items()}
        self.source = [*translator.ids(run.source_text), self.config.eos_id]
        self.target = [*run.target_ids]
        self.pre = self.config.norm == "pre"
        self.size = self.config.d_head
        self.seen: dict[Any, Any] = {}
        self.logits = self.forward(seen=self.seen)
        self.base = self.log_probs()
        self.embedding = self.state["embedding.weight"]

    def forward(self, change=None, scale=None, source=None, target=None, seen=None) -> Doubles:
        """(steps, pieces) logits; ``change`` makes the output of a head, ``scale`` lengthens
        embeddings."""
        seen = {} if seen is None else seen
        ids = {
            "encoder": source or self.source,
            "decoder": [self.config.bos_id, *(target or self.target)[:-1]],
        }
        memory = None
        for side in ids:
            tokens = self.state["embedding.weight"][ids[side]] * np.sqrt(self.config.d_model)
            tokens = tokens * (1 if scale is None else scale[side][:, None])
            x, seen[side, "token"] = tokens, tokens
            if self.config.positions == "sinusoidal":
                angles = np.arange(len(x))[:, None] / 10_000 ** (
                    np.arange(0, x.shape[1], 2) / x.shape[1]
                )
                seen[side, "position"] = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(
                    len(x), -1
                )
                x = tokens + seen[side, "position"]
            seen[side, "input"] = x
            for layer, name in self.sublayers(side):
                entered = x
                place = f"{side}.layers.{layer}.{name}"
                read = self.normed(f"{place}_residual.norm", x) if self.pre else x
                if name == "feed_forward":
                    units = np.maximum(0, self.linear(f"{place}.inner", read))
                    seen[side, layer, "units"] = units
                    update = self.linear(f"{place}.outer", units)
                else:
                    kind = "cross" if name == "cross_attention" else side
                    update = self.attend(
                        (kind, layer),
                        place,
                        read,
                        memory if kind == "cross" else read,
                        change,
                        seen,
                    )
                x = x + update if self.pre else self.normed(f"{place}_residual.norm", x + update)
                seen[side, layer, name] = entered, read, update, x
            memory = seen[side, "end"] = self.normed(f"{side}.final_norm", x) if self.pre else x
        return memory @ self.state["embedding.weight"].T + self.state.get("output_bias", 0)

    def attend(self, place, name, read, sources, change, seen) -> Doubles:
        query, key, value = (
            self.linear(f"{name}.{each}_proj", x).reshape(len(x), -1, self.size).swapaxes(0, 1)
            for each, x in (("q", read), ("k", sources), ("v", sources))
        )
        if self.config.positions == "rotary" and place[0] != "cross":
            query = turned(query)
            key = turned(key)
        scores = query @ key.swapaxes(1, 2) / np.sqrt(self.size) + self.bias(
            *place, query, len(sources)
        )
        mask = np.ones(scores.shape[1:], bool)
        mask = np.tril(mask) if place[0] == "decoder" else mask
        weights = softmax(np.where(mask, scores, -np.inf))
        output = weights @ value if change is None else change(place, weights, value, mask)
        seen[place] = Head(query, key, value, scores, mask, weights, output, sources)
        return self.linear(f"{name}.out_proj", output.swapaxes(0, 1).reshape(len(read), -1))

    def bias(self, kind: str, layer: int, query: Doubles, keys: int) -> Doubles | float:
        """q_i · a_{j−i} / √d_k (Shaw et al.

        2018); of T5 what was recorded, which only distances decide.
        """
        rows = query.shape[1]
        if self.config.positions == "shaw" and kind != "cross":
            away = (np.arange(keys) - np.arange(rows)[:, None]).clip(-16, 16) + 16
            vectors = self.state[f"{kind}.positions.vectors"][layer][:, away]
            return np.einsum("hqd,hqkd->hqk", query, vectors) / np.sqrt(self.size)
        found = [
            self.run.attention.map(kind, layer, head).bias for head in range(self.config.n_heads)
        ]
        return 0.0 if found[0] is None else np.stack(found)[:, :rows, :keys].astype(float)

    def sublayers(self, side: str) -> list[tuple[int, str]]:
        names = ["self_attention", "cross_attention", "feed_forward"]
        layers = self.config.n_encoder_layers if side == "encoder" else self.config.n_decoder_layers
        return [
            (i, name)
            for i in range(layers)
            for name in names
            if side == "decoder" or name[0] != "c"
        ]

    def linear(self, name: str, x: Doubles) -> Doubles:
        return x @ self.state[f"{name}.weight"].T + self.state[f"{name}.bias"]

    def normed(self, name: str, x: Doubles, entered: Doubles | None = None) -> Doubles:
        """γ (x − μ) / σ + β; with the σ of what entered and without β for a part of it."""
        sigma = np.sqrt((x if entered is None else entered).var(-1, keepdims=True) + 1e-5)
        found = self.state[f"{name}.weight"] * (x - x.mean(-1, keepdims=True)) / sigma
        return found if entered is not None else found + self.state[f"{name}.bias"]

    def matrix(self, kind: str, layer: int, which: str, head: int) -> Doubles:
        """(d_model, d_head) W_Q, W_K or W_V of a head, or its (d_head, d_model) of W_O."""
        place = f"{SIDES[kind]}.layers.{layer}.{'cross' if kind == 'cross' else 'self'}_attention.{which}_proj"
        own = slice(head * self.size, (head + 1) * self.size)
        weight = self.state[f"{place}.weight"]
        return weight[:, own].T if which == "out" else weight[own].T

    def log_probs(self, target=None, **changes) -> Doubles:
        """(steps,) of every token of a target, the run's own unless another is named."""
        rows = log_softmax(self.forward(target=target, **changes))
        return rows[np.arange(len(rows)), target or self.target]

    def effect(self, *cut, **named) -> Doubles:
        return self.log_probs(change=lambda *at: without(*at, *cut, **named)) - self.base

    def written(
        self, side: str, at: int, reader=None, total=None
    ) -> dict[tuple[Any, ...], Doubles]:
        """(d_model,) what each writer, and each key of a head, gave to what is read at a token."""
        found: dict[tuple[Any, ...], Doubles] = {}
        for what in ("token", "position"):
            if (side, what) in self.seen:
                found[what, None, None] = self.onward(
                    self.seen[side, what][at], side, at, 0, reader
                )
        for number, (layer, name) in enumerate(self.sublayers(side)):
            if (layer, name) == reader:
                break
            if name == "feed_forward":
                update = self.seen[side, layer, name][2][at]
                found[name, layer, None] = self.onward(update, side, at, number, reader)
                continue
            kind = "cross" if name == "cross_attention" else side
            for head in range(self.config.n_heads):
                values = self.seen[kind, layer].value[head] @ self.matrix(kind, layer, "out", head)
                split = self.seen[kind, layer].weights[head, at][:, None] * values
                split = np.stack([self.onward(each, side, at, number, reader) for each in split])
                found[name, layer, head], found[name, layer, head, "keys"] = split.sum(0), split
        read = self.seen[side, "end"][at] if reader is None else self.seen[side, *reader][1][at]
        known = sum(each for writer, each in found.items() if len(writer) == 3)
        return {("biases", None, None): read - known, **found}

    def onward(self, part: Doubles, side: str, at: int, number: int, reader=None) -> Doubles:
        """A part of the stream as it is read, with the σ of the run in every LayerNorm on its
        way."""
        for layer, name in self.sublayers(side)[number:]:
            place = f"{side}.layers.{layer}.{name}_residual.norm"
            (entered, _, update, _) = self.seen[side, layer, name]
            if (layer, name) == reader:
                return self.normed(place, part, entered[at]) if self.pre else part
            part = part if self.pre else self.normed(place, part, (entered + update)[at])
        last = self.seen[side, *self.sublayers(side)[-1]][3][at]
        return self.normed(f"{side}.final_norm", part, last) if self.pre else part


class Head(NamedTuple):
    """All heads of a place, each first axis; the sources are what keys and values are made of."""

    query: Doubles
    key: Doubles
    value: Doubles
    scores: Doubles
    mask: Doubles
    weights: Doubles
    output: Doubles
    sources: Doubles


def turned(vectors: Doubles) -> Doubles:
    """Each pair of dimensions is a complex number, multiplied by e^(i · position · θ)."""
    width = vectors.shape[-1]
    places = np.arange(vectors.shape[-2])[:, None]
    pairs = vectors[..., 0::2] + 1j * vectors[..., 1::2]
    pairs = pairs * np.exp(1j * places / 10_000 ** (np.arange(0, width, 2) / width))
    return np.stack([pairs.real, pairs.imag], -1).reshape(vectors.shape)


def without(
    place, weights, value, mask, kind, keys, way, layer=None, head=None, query=None
) -> Doubles:
    """The heads' output, if keys are hidden, or their values are 0 or the mean of the visible
    ones."""
    if place[0] != kind or layer not in (None, place[1]):
        return weights @ value
    gone = np.zeros_like(weights)
    heads, queries = (
        slice(None) if each is None else slice(each, each + 1) for each in (head, query)
    )
    for key in keys:
        gone[heads, queries, key] = weights[heads, queries, key]
    left = weights - gone
    if way == "hidden":
        return left / left.sum(-1, keepdims=True) @ value
    share = gone.sum(-1, keepdims=True) if way == "mean" else 0 * gone[..., :1]
    return left @ value + share * (mask / mask.sum(-1, keepdims=True) @ value)
