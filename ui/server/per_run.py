"""Analyses of the models beyond a translation, for the pages that look deeper: made once, and then kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import TypeVar

import streamlit as st
from torch import Tensor

from lab.heads.first_heads import Grid, grid
from lab.heads.statistics import sentence_totals
from lenses.inside.block import Block, open_block
from lenses.inside.inside import InsideHead, look_inside
from lenses.measures.stream import Tell
from lenses.targets.filters import FilteredStep, filtered_steps
from lenses.targets.lesson import Lesson
from lenses.targets.lesson import lesson as shown_lesson
from lenses.targets.smoothing import SmoothedPosition
from lenses.targets.smoothing import smoothed as shown_smoothed
from lenses.what_if.build import Pair, Plane, plane_of
from lenses.what_if.causal_trace import CausalTrace, causal_trace
from lenses.what_if.untrained import same_tokens, untrained_twin
from transformer import Translation, Translator
from transformer.decode.rules import SearchRules
from transformer.model.sites import AttentionKind, Head, PlacedHead, Side
from transformer.runs.batch import BatchEntry, run_batch
from transformer.runs.branch import branch
from transformer.runs.draws import Draws, draw
from transformer.runs.retrace import retrace
from transformer.trace.value_norms import output_projections
from transformer.training.runs.history import History, read_history
from ui.server import measured
from ui.server.catalogue import addressed, has_model, model, translator
from ui.server.hosting import hosted
from ui.server.runs import Drawing, Progress, Request, search, traced
from ui.server.stores import kept

LONGEST_IN_BATCH = 128
"""Most tokens of a sentence in a batch: six such sentences take about 60 MB."""

V = TypeVar("V")


@st.cache_resource(max_entries=2, show_spinner=False)
def _untrained(name: str, trained: int, seed: int) -> Translator:
    return untrained_twin(translator(name), seed)


def rearranged(key: Hashable, make: Callable[[], V]) -> V:
    """Result of a twin for a shifted or changed sentence, made once and then kept."""
    made: V = kept("rearranged").get(key, make)
    return made


def retraced(asked: Request, translation: Translation) -> Translation:
    """The same translation with its residual stream, from a second pass over the translation."""
    model = translator(asked.model)
    return kept("traced").get((asked, id(translation)), lambda: retrace(model, translation))


def inside(
    asked: Request,  # the request that identifies the translation
    translation: Translation,  # the translation as it was decoded
    kind: str,  # encoder, decoder or cross
    chosen: Head,  # layer and head, from 0
    row: int,  # the query, from 0
) -> InsideHead:
    """One query of one head, step by step."""
    again = retraced(asked, translation)
    return look_inside(translator(asked.model).model, again, (kind, *chosen), row, translation)


def plane(
    asked: Request, run: Translation, place: PlacedHead, row: int, pair: Pair | None, goal: str
) -> Plane:
    """The plane of two keys in which a query is built, see `plane_of`; the pair is sought once."""
    made = kept("questions").get(
        (asked, id(run), place, row, pair, goal), lambda: plane_of(run, place, row, pair, goal).pair
    )
    return plane_of(run, place, row, made, goal)


def copies(asked: Request, run: Translation, place: PlacedHead, found: Plane) -> tuple[Tensor, Tensor]:
    """The queries (d_head,) of two heads, one of which copies the first key of a plane, one the second."""
    both = found, replace(found, pair=(found.pair[1], found.pair[0]))
    key = ("copies", asked, id(run), place, found.row, found.pair)
    queries: tuple[Tensor, Tensor] = kept("questions").get(
        key, lambda: tuple(each.copying() for each in both)
    )
    return queries


def block(asked: Request, translation: Translation, side: Side, layer: int, position: int) -> Block:
    """One layer (from 0) of a stack at one token (from 0), sub-layer by sub-layer."""
    return open_block(translator(asked.model).model, retraced(asked, translation), side, layer, position)


def untrained(asked: Request, translation: Translation, seed: int) -> Translation:
    """The same source and target tokens through a model of the same shape with fresh weights.

    Raises:
        NoModelError: the run was opened from a file.
    """
    twin = _untrained(asked.model, id(translator(asked.model)), seed)
    return kept("translations").get((asked, id(translation), seed), lambda: same_tokens(twin, translation))


def causes(asked: Request, other: str, tell: Tell) -> CausalTrace:
    """Which places carry the difference between a sentence and another, scored on the request's target.

    Raises:
        ValueError: the sentences do not differ in one word of as many tokens, or a text cannot be read.
    """
    model = translator(asked.model)
    return kept("causal").get(
        (asked, id(model), other), lambda: causal_trace(model, asked.text, other, asked.target, tell)
    )


def statistics(asked: Request, translation: Translation, kind: str) -> Grid:
    """Statistics of every head of a kind over this sentence, by layer and head."""

    def make() -> Grid:
        parts = output_projections(model(asked.model).model) if has_model(asked.model) else None
        return grid(sentence_totals(translation, AttentionKind(kind), parts))

    return kept("statistics").get((asked, id(translation), kind), make)


def batch(name: str, texts: tuple[str, ...]) -> tuple[BatchEntry, ...]:
    """Several sentences translated as one padded batch.

    Raises:
        ValueError: a text is empty or too long.
    """
    hosted.check_texts(*texts)
    model = translator(name)
    texts = tuple(addressed(name, text, None) for text in texts)
    for text in texts:
        if (length := len(model.ids(text)) + 1) > LONGEST_IN_BATCH:
            raise ValueError(
                f"A sentence of the batch has {length:,} tokens; at most {LONGEST_IN_BATCH} are allowed here."
            )
    key = (name, id(model), texts)
    return kept("batches").get(key, lambda: run_batch(model, texts))


def searched(
    asked: Request,  # the request, decoded with a beam; its target does not count
    # the model's, or with another score; with its own, a translation has searched already
    rules: SearchRules,
    progress: Progress,  # hears how far the search has come
) -> Translation:
    """A beam search with its tree, and with what greedy search writes.

    Raises:
        ValueError: the text cannot be translated, or a change does not hold in a search.
    """
    model = translator(asked.model)
    found: Translation
    if rules == model.rules:
        found = traced(asked, progress)
    else:
        hosted.check_texts(asked.text)
        hosted.check_search(asked.decode)

        def make() -> Translation:
            return search(model, asked, rules, progress)

        found = kept("searches").get((asked, rules, id(model)), make)
    assert found.tree is not None
    for count, piece in enumerate(found.tree.stream_greedy(), start=1):
        progress.wrote(count, piece)
    return found


def branched(asked: Request, search: Translation, node: int) -> Translation:
    """The run of a node of a search's tree, from a pass over its tokens."""
    model = translator(asked.model)
    return kept("branches").get((asked, id(search), node), lambda: branch(model, search, node))


def drawn(asked: Request, drawing: Drawing, seeds: range, tell: Tell) -> Draws:
    """Samples of a text, drawn one after the other; raises as ``searched``."""
    model, changes = translator(asked.model), asked.changes
    hosted.check_draws(len(seeds))

    def told() -> Iterator[int]:
        for done, seed in enumerate(seeds):
            tell(done / len(seeds))
            yield seed

    def make() -> Draws:
        return draw(model, asked.text, drawing.sampling(), told(), changes)

    return kept("draws").get((asked.model, asked.text, changes, drawing, seeds, id(model)), make)


def filtered(asked: Request, translation: Translation) -> tuple[FilteredStep, ...]:
    """The distributions of the steps of a sample, before and after temperature, top-k and top-p."""
    model, sampling = translator(asked.model), asked.drawing.sampling()
    return kept("filtered").get(
        (asked, id(translation)), lambda: filtered_steps(model, translation, sampling)
    )


def lesson(
    name: str,  # the model
    translation: Translation,  # gives source and target
) -> Lesson:
    """A pair as training shows it to a model as it is, without changes."""
    model = translator(name)
    text, target = translation.source_text, translation.target_ids
    return kept("lessons").get((name, text, target, id(model)), lambda: shown_lesson(model, text, target))


def smoothed(name: str, lesson: Lesson, position: int, epsilon: float) -> SmoothedPosition:
    """The loss of a position (from 0) of a model's lesson, with label smoothing."""
    return shown_smoothed(translator(name), lesson, position, epsilon)


def history(name: str) -> History | None:
    """Training of a model, from the file beside it; None if it has none of its own.

    Raises:
        ValueError: the file is damaged.
    """
    return measured.beside(name, read_history)
