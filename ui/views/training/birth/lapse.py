"""The sentence at one snapshot: the map of a head, all heads, the loss, and what the model writes."""

from __future__ import annotations

from dataclasses import dataclass

import plotly.graph_objects as go
import streamlit as st

from figures import Tile, heatmap, overview
from figures.base import captions, labels, style
from figures.pages.training.birth import Trend, over_snapshots
from lab.birth.sentence import Frame
from transformer.runs.translation import Translation
from transformer.trace.view import HeadView
from ui.address import session
from ui.address.state import State
from ui.controls import export, pickers
from ui.controls.export import Picture, Table
from ui.controls.text import plain
from ui.linked_view import Head
from ui.server import runs
from ui.views.training.birth import told

_MAP, _TILES = 400, 400
"""Px of the large map, and of the map of all heads."""
_SEEING = (
    "While this model was trained, its weights were kept after the steps on the slider; step 0 is the "
    "untrained model. Every snapshot reads your sentence and the same translation, so only the weights "
    "change. Click a tile to open its head, or a point of the loss to open its snapshot."
)


@dataclass(frozen=True)
class Seen:
    """A sentence through the snapshots of a run."""

    run: str  # name of the run
    frames: tuple[Frame, ...]  # the sentence at each snapshot
    given: str | None  # the model whose translation every snapshot reads; None if the visitor wrote it

    @property
    def steps(self) -> list[int]:
        """The training step of each snapshot."""
        return [each.step for each in self.frames]


def play(seen: Seen) -> None:
    """Draws the snapshot after that of the state."""
    _next(seen)
    show(seen)


def show(seen: Seen) -> None:
    """Draws the snapshot of the state."""
    now = session.current()
    chosen = place(seen.steps, now.snapshot)
    frame, kind = seen.frames[chosen], now.kind or "cross"
    _slider(seen, chosen, now.play)
    st.markdown(told.snapshot(seen.frames, chosen, seen.given))
    head = head_of(now, seen.run, kind, frame.forced)
    left, right = st.columns([1.05, 1], gap="medium")
    with left:
        _map(frame.forced.head(kind, *head))
    with right:
        _tiles(frame.forced, kind, head)
        _losses(seen, chosen)
    _every(seen)


def _next(seen: Seen) -> None:
    """Goes on to the next snapshot, after the last one to the first; the last one ends the play."""
    chosen = (place(seen.steps, session.current().snapshot) + 1) % len(seen.frames)
    if chosen == len(seen.frames) - 1:
        session.rerun(snapshot=None, play=False)
    session.resolve(snapshot=seen.steps[chosen])


def place(steps: list[int], step: int | None) -> int:
    """The snapshot (from 0) that is nearest to a step; the last one for None."""
    if step is None:
        return len(steps) - 1
    return min(range(len(steps)), key=lambda i: abs(steps[i] - step))


def head_of(now: State, run: str, kind: str, shown: Translation) -> Head:
    """The chosen head, or the one that opens first; one that the model lacks moves to the nearest."""
    layer, head = now.born or runs.default_head(run, kind)
    site = next(each for each in shown.config.sites.values() if each.kind.value == kind)
    return min(layer, site.n_layers - 1), min(head, shown.config.n_heads - 1)


def _slider(seen: Seen, chosen: int, playing: bool) -> None:
    steps = seen.steps
    st.select_slider(
        "Training step",
        steps,
        steps[chosen],
        format_func=lambda step: f"{step:,}",
        disabled=playing,
        **pickers.control("snapshot", steps[chosen], lambda step: _take(seen, int(step)), map(str, steps)),
    )


def _take(seen: Seen, step: int) -> None:
    session.change(snapshot=None if step == seen.steps[-1] else step)


def _map(view: HeadView) -> None:
    caption = captions.caption(view).replace("{step}", "")
    key = "training-birth-map"
    st.html(f"<style>.st-key-{key} {{ overflow-x: auto; }}</style>")
    with st.container(key=key):
        st.plotly_chart(
            heatmap(view, _MAP),
            width="content",
            key="training.birth.map",
            config={"displayModeBar": False},
            alt=captions.summary(view),
        )
    st.caption(plain(f"{caption} · {captions.badge(view.audit)['text']}"))
    with st.container(horizontal=True, gap="small"):
        pickers.seen("What am I seeing?", _SEEING)
        if not session.current().play:  # an export is a fragment, which a part with a clock must not hold
            picture = Picture(lambda: heatmap(view, _MAP), caption, view.audit, table=lambda: cells(view))
            name = f"birth {view.kind}"
            export.pictures(name, {name: picture})


def _tiles(shown: Translation, kind: str, head: Head) -> None:
    site = next(each for each in shown.config.sites.values() if each.kind.value == kind)
    tiles = [
        [
            Tile.of(shown.weights(kind, layer, i), shown.mask(kind, layer, i))
            for i in range(shown.config.n_heads)
        ]
        for layer in range(site.n_layers)
    ]

    def choose(picked: object) -> None:
        if isinstance(picked, (list, tuple)) and len(picked) == 2:
            session.change(born=(int(picked[0]), int(picked[1])))

    key = f"training.birth.tiles.{kind}"
    alt = f"All heads of {captions.KIND_NAMES[kind].lower()}, {shown.model}"
    pickers.clickable(overview(tiles, kind, head, width=_TILES), key, choose, alt)
    st.caption(plain(f"All heads of this kind · {shown.model} · click a tile to open it"))


def _losses(seen: Seen, chosen: int) -> None:
    caption = f"Loss of the given translation in nats per token, by training step · {seen.run}"
    key = "training.birth.loss"

    def draw(marked: int | None = chosen) -> go.Figure:
        line = Trend("this sentence", [each.loss for each in seen.frames], style.POSITIVE)
        return over_snapshots(seen.steps, [line], "loss in nats", marked, height=220)

    def choose(picked: object) -> None:
        if isinstance(picked, int) and picked < len(seen.frames):
            _take(seen, seen.steps[picked])

    pickers.clickable(draw(), key, choose, caption)
    st.caption(plain(caption))
    if not session.current().play:
        export.picture("birth loss", draw, caption, table=lambda: table(seen))


def _every(seen: Seen) -> None:
    with st.expander("What every snapshot writes on its own"):
        rows = [
            f"| {each.step:,} | {labels.number(each.loss)} | {plain(each.written) or '—'} |"
            for each in seen.frames
        ]
        st.markdown("\n".join(["| step | loss | translation |", "| ---: | ---: | --- |", *rows]))


def cells(view: HeadView) -> Table:
    """The weights of a map as rows of numbers for CSV; programs count from 0."""
    rows = [
        (i, query, j, key, float(view.weights[i, j]), bool(view.mask[i, j]))
        for i, query in enumerate(view.query_tokens)
        for j, key in enumerate(view.key_tokens)
    ]
    return [("query", "query token", "key", "key token", "weight", "may attend"), *rows]


def table(seen: Seen) -> Table:
    """The loss and the translation of every snapshot, for CSV."""
    return [("step", "loss", "translation"), *((each.step, each.loss, each.written) for each in seen.frames)]
