"""Translations and values read from them, computed once and then kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import streamlit as st

from figures import Tile
from transformer import Sampling, Translation, Translator
from transformer.lenses.block import Block, open_block
from transformer.lenses.inside import InsideHead, look_inside
from transformer.model.sites import AttentionKind, Side
from transformer.study.facts import Grid, grid
from transformer.study.first_heads import first_heads
from transformer.study.statistics import sentence_totals
from transformer.text.vocabulary import clean
from transformer.trace.value_norms import output_projections
from transformer.translate.batch import BatchEntry, run_batch
from transformer.translate.retrace import retrace
from transformer.what_if.untrained import same_tokens, untrained_twin
from ui.address.parameters import State
from ui.address.values import BEAM, SAMPLE
from ui.linked_view import Head
from ui.server import examples, imported
from ui.server.catalogue import addressed, available, facts, has_model, languages, sizes, translator
from ui.server.stores import Recent, held

TEMPERATURE = 0.8
LONGEST_IN_BATCH = 128
"""Most tokens of a sentence in a batch: six such sentences take about 60 MB."""

V = TypeVar("V")


@st.cache_resource(max_entries=2, show_spinner=False)
def _untrained(name: str, trained: int, seed: int) -> Translator:
    return untrained_twin(translator(name), seed)


_STORES: dict[str, tuple[int, Callable[[Translation], int] | None]] = {
    "translations": (64, held),
    "traced": (8, held),
    "overviews": (64, None),
    "statistics": (64, None),
    "rearranged": (64, None),
    "first heads": (32, None),
    "batches": (6, None),
}
"""Number of values to keep of each sort, and how to measure their size."""


@st.cache_resource(show_spinner=False)
def _store(name: str) -> Recent[Any]:
    return Recent(*_STORES[name])


def rearranged(key: Hashable, make: Callable[[], V]) -> V:
    """What a twin computes for a shifted or changed sentence, made once and then kept."""
    made: V = _store("rearranged").get(key, make)
    return made


@dataclass(frozen=True)
class Asked:
    """What identifies a translation.

    Attributes:
        model: the name of the model.
        text: the sentence.
        decode: `greedy`, `beam-4`, `sample-7`.
        target: the visitor's own translation, or None.
    """

    model: str
    text: str
    decode: str
    target: str | None

    @property
    def trace(self) -> str:
        """A short name of the translation, which figures, events and the view use to match each other."""
        parts = "\0".join((self.model, self.text, self.decode, self.target or "", str(self.target is None)))
        return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def request(state: State, model: str, text: str) -> Asked:
    """The translation that a state asks for."""
    target = None if state.target is None else clean(state.target)
    return Asked(model, addressed(model, clean(text), state.language), state.decode, target)


def translate(asked: Asked, progress: Callable[[int, str], None]) -> Translation:
    """The translation, decoded once and then kept.

    Args:
        asked: what to translate, and how.
        progress: called now and then with the number of tokens so far and the last one.

    Raises:
        ValueError: the text cannot be translated; the message says why.
    """
    if not has_model(asked.model):
        return imported.run_of(asked.model, asked.text, asked.decode, asked.target)
    model = translator(asked.model)
    return _store("translations").get((asked, id(model)), lambda: _decode(model, asked, progress))


def _decode(model: Translator, asked: Asked, progress: Callable[[int, str], None]) -> Translation:
    if asked.target is not None:
        return model.force(asked.text, asked.target)
    beam_size = int(asked.decode.removeprefix(BEAM)) if asked.decode.startswith(BEAM) else 1
    sample = None
    if asked.decode.startswith(SAMPLE):
        sample = Sampling(temperature=TEMPERATURE, seed=int(asked.decode.removeprefix(SAMPLE)))
    for count, step in enumerate(model.stream(asked.text, beam_size, sample=sample), start=1):
        if isinstance(step, Translation):
            return step
        progress(count, step.token)
    raise AssertionError("a stream ends with the translation")


def traced(asked: Asked, translation: Translation) -> Translation:
    """The same translation with its residual stream, from a second pass over the translation."""
    model = translator(asked.model)
    return _store("traced").get((asked, id(translation)), lambda: retrace(model, translation))


def inside(asked: Asked, translation: Translation, kind: str, chosen: Head, row: int) -> InsideHead:
    """One query of one head, step by step.

    Args:
        asked: the request that identifies the translation.
        translation: the translation as it was decoded.
        kind: encoder, decoder or cross.
        chosen: layer and head, from 0.
        row: the query, from 0.
    """
    again = traced(asked, translation)
    return look_inside(translator(asked.model).model, again, (kind, *chosen), row, translation)


def block(asked: Asked, translation: Translation, side: Side, layer: int, position: int) -> Block:
    """One layer (from 0) of a stack at one token (from 0), sub-layer by sub-layer."""
    return open_block(translator(asked.model).model, traced(asked, translation), side, layer, position)


def untrained(asked: Asked, translation: Translation, seed: int) -> Translation:
    """The same source and target tokens through a model of the same shape with fresh weights.

    Raises:
        NoModelError: the run was opened from a file.
    """
    twin = _untrained(asked.model, id(translator(asked.model)), seed)
    return _store("translations").get((asked, id(translation), seed), lambda: same_tokens(twin, translation))


def default_head(name: str, kind: str) -> Head:
    """The head that opens first: from `heads.json`, otherwise measured on a few sentences."""
    known = name if has_model(name) else imported.find(name).translation.model
    chosen = first_choice(known).get(kind) if known in available() else None
    layers, heads = sizes(name)[kind]
    if chosen is None:
        return layers - 1, 0
    return min(int(chosen[0]), layers - 1), min(int(chosen[1]), heads - 1)


def first_choice(name: str) -> dict[str, Head]:
    """The heads that open first, by kind: from `heads.json`, otherwise measured once on the examples."""
    if (known := facts(name).get("default")) is not None:
        return known
    model, (language, *_) = translator(name), (*languages(name), None)
    texts = [addressed(name, example.text, language) for example in examples.examples()]
    return _store("first heads").get((name, id(model)), lambda: first_heads(model, texts))


def lengths(translation: Translation, kind: str) -> tuple[int, int]:
    """Rows and columns of the whole map of a kind."""
    target, source = len(translation.target_tokens), len(translation.source_tokens)
    return {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}[kind]


def followed(translation: Translation, chosen: Head) -> list[int]:
    """For each step, the source token that a cross-attention head attends to most, except `</s>`."""
    assert translation.attention is not None
    weights = translation.attention.weights("cross", *chosen)
    words = weights[:, :-1] if weights.shape[1] > 1 else weights
    return [int(column) for column in np.argmax(words, axis=1)]


def overview(
    asked: Asked, translation: Translation, what: Hashable, make: Callable[[], list[list[Tile]]]
) -> list[list[Tile]]:
    """All heads of a kind, pooled for one tiled map, made once and then kept.

    Args:
        asked: the request that identifies the translation.
        translation: whose attention.
        what: which heads, and how to read and colour them.
        make: makes the tiles.
    """
    return _store("overviews").get((asked, id(translation), what), make)


def whole(translation: Translation, kind: str, chosen: Head) -> tuple[np.ndarray, np.ndarray]:
    """Weights and mask of a whole head (queries, keys), for a pooled overview of a long sentence."""
    assert translation.attention is not None
    trace = translation.attention
    return trace.weights(kind, *chosen), trace.mask(kind, *chosen)


def statistics(asked: Asked, translation: Translation, kind: str) -> Grid:
    """Statistics of every head of a kind over this sentence, by layer and head."""

    def make() -> Grid:
        parts = output_projections(translator(asked.model).model) if has_model(asked.model) else None
        return grid(sentence_totals(translation, AttentionKind(kind), parts))

    return _store("statistics").get((asked, id(translation), kind), make)


def batch(name: str, texts: tuple[str, ...]) -> tuple[BatchEntry, ...]:
    """Several sentences translated as one padded batch.

    Raises:
        ValueError: a text is empty or too long.
    """
    model = translator(name)
    texts = tuple(addressed(name, text, None) for text in texts)
    for text in texts:
        if (length := len(model.ids(text)) + 1) > LONGEST_IN_BATCH:
            raise ValueError(
                f"A sentence of the batch has {length:,} tokens; at most {LONGEST_IN_BATCH} fit here."
            )
    key = (name, id(model), texts)
    return _store("batches").get(key, lambda: run_batch(model, texts))
