"""Analyses of the models beyond a translation, for the pages that look deeper: made once, and then
kept."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor

from explorer.app.server import hosted
from explorer.app.server.run_key import Drawing, RunKey
from explorer.app.server.runs import longest, search, so_far, translate, typed
from explorer.app.server.source import Progress, Source
from explorer.app.server.stores import Recent, bytes_of, remembered
from explorer.app.server.view import View
from explorer.lenses.heads.statistics import Grid, HeadsOfKind, grid
from explorer.lenses.inside.inside import InsideHead, look_inside
from explorer.lenses.measures.stream import Tell
from explorer.lenses.targets.filters import FilteredStep, filtered_steps
from explorer.lenses.targets.lesson import TrainingView
from explorer.lenses.targets.lesson import lesson as shown_lesson
from explorer.lenses.what_if.build import Pair, Plane, plane_of
from explorer.lenses.what_if.controls import untrained_twin
from transformer import Translation
from transformer.batches import run_batch
from transformer.config import AttentionKind, Head, PlacedHead
from transformer.decoding import SearchRules
from transformer.hooks import Capture
from transformer.sampling import Draws, draw
from transformer.translator import retrace

LONGEST_IN_BATCH = 128
"""Most tokens of a sentence in a batch: six such sentences take about 60 MB."""

rearranged = Recent[Any](64).get
"""What a twin computes of a shifted or changed sentence, by key, made once and then kept."""


@remembered(8, bytes_of)
def retraced(opened: View) -> Translation:
    """The same translation with its residual stream, from a second pass over the translation."""
    return retrace(opened.source.load(), opened.translation)


def inside(opened: View, kind: str, chosen: Head, row: int) -> InsideHead:
    """One query (from 0) of one head (layer and head, from 0), step by step."""
    model = opened.source.load().model
    return look_inside(model, retraced(opened), (kind, *chosen), row, opened.translation)


@remembered(8)
def plane(opened: View, place: PlacedHead, row: int, pair: Pair | None, goal: str) -> Plane:
    """The plane of two keys in which a query is built, see `plane_of`."""
    return plane_of(opened.translation, place, row, pair, goal)


@remembered(64)
def copies(
    _opened: View, _place: PlacedHead, _row: int, pair: Pair, *, plane: Plane
) -> tuple[Tensor, Tensor]:
    """The queries (d_head,) of two heads, one of which copies the first key of a plane, one the
    second."""
    return plane.copying(), replace(plane, pair=(pair[1], pair[0])).copying()


@remembered(8, bytes_of)
def untrained(opened: View, seed: int) -> Translation:
    """The same tokens through a model of the same shape with fresh weights."""
    return untrained_twin(opened.source.load(), seed).again(opened.translation)


@remembered(64)
def statistics(opened: View, kind: str) -> Grid:
    """Statistics of every head of a kind over this sentence, by layer and head."""
    source = opened.source
    parts = source.load().model.output_projection if source.has_model else None
    return grid(HeadsOfKind.of(opened.translation, AttentionKind(kind), parts).sums)


@remembered(6)
def batch(source: Source, texts: tuple[str, ...]) -> tuple[Translation, ...]:
    """Several sentences translated as one padded batch.

    ValueError if a text is empty or too long.
    """
    hosted.check(*texts)
    model = source.load()
    texts = tuple(source.addressed(text, None) for text in texts)
    longest = max(len(model.ids(text)) + 1 for text in texts)
    if longest > LONGEST_IN_BATCH:
        raise ValueError(
            f"A sentence of the batch has {longest:,} tokens; at most {LONGEST_IN_BATCH} are "
            "allowed here."
        )
    return run_batch(model, texts)


def searched(run_key: RunKey, rules: SearchRules, progress: Progress) -> Translation:
    """A beam search, by the model's rules or with another score, with its tree and what greedy
    search writes.

    ValueError if the text cannot be translated, or a change does not hold in a search.
    """
    if rules == run_key.source.load().rules:
        run = translate(run_key, progress, whole=True)
    else:
        hosted.check(run_key.text, decode=run_key.decode)
        run = _searched(run_key, rules, progress=progress)
    assert run.tree is not None
    pieces = list[str]()
    for piece in run.tree.stream_greedy():
        pieces.append(piece)
        progress(*so_far(pieces))
    return run


@remembered(16, bytes_of)
def _searched(run_key: RunKey, rules: SearchRules, *, progress: Progress) -> Translation:
    return search(run_key.source.load(), run_key, rules, progress)


@remembered(64, bytes_of)
def branched(search: View, node: int) -> Translation:
    """The run of a node of a search's tree, from a pass over its tokens."""
    return retrace(search.source.load(), search.translation, Capture(), node)


@remembered(32)
def drawn(run_key: RunKey, drawing: Drawing, seeds: range, *, tell: Tell) -> Draws:
    """Samples of a text, drawn one after the other; raises as ``searched``."""
    hosted.check(draws=len(seeds))

    def steps_done() -> Iterator[int]:
        for done, seed in enumerate(seeds):
            tell(done / len(seeds))
            yield seed

    model = run_key.source.load()
    options = longest(model, run_key)
    text = typed(model, run_key)
    options["interventions"] = run_key.changes
    translate = partial(model.translate, text, **options)
    return draw(translate, drawing.sampling(), steps_done())


@remembered(32)
def filtered(opened: View) -> tuple[FilteredStep, ...]:
    """The distributions of the steps of a sample, before and after temperature, top-k and top-p."""
    sampling = opened.run_key.drawing.sampling()
    return filtered_steps(opened.source.load(), opened.translation, sampling)


@remembered(64, lambda shown: shown.features.nbytes)
def lesson(opened: View) -> TrainingView:
    """A pair as training shows it to the model as it is, without changes."""
    run = opened.translation
    return shown_lesson(opened.source.load(), run.source_text, run.target_ids, run.start_id)
