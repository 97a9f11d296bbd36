"""Birth of a head: a sentence through the snapshots of a run, and the statistics of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from figures import Tile, heatmap, overview
from figures.base import captions, labels, style
from figures.pages.training.birth import Trend, over_snapshots
from lab.birth.sentence import Frame
from transformer.model.sites import Head
from transformer.runs.translation import Translation
from transformer.text.typed import clean
from transformer.trace.view import HeadView
from ui.address import State, session
from ui.controls import Table, chart, export, inform, panel, part, pickers, plain
from ui.server import models, runs
from ui.server.opened import Opened
from ui.server.training import births
from ui.shell import menu
from ui.shell.fitting import fit_head

_NO_RUN = (
    "No model here has snapshots of its training. `python -m transformer train --snapshots 12` keeps some; "
    "any model in the folder of models that has them can be opened here."
)
_TICK = 0.9
"""Seconds between two snapshots while the visitor plays."""
_MAP, _TILES = 400, 400
"""Px of the large map, and of the map of all heads."""
_SEEING = (
    "While this model was trained, its weights were kept after the steps on the slider; step 0 is the "
    "untrained model. Every snapshot reads your sentence and the same translation, so only the weights "
    "change. Click a tile to open its head, or a point of the loss to open its snapshot."
)


def show(opened: Opened, now: State) -> None:
    runs = births.runs()
    if not runs:
        inform(_NO_RUN)
        return
    if now.snapshot is None:  # the page opens at the first snapshot, and plays
        now = session.resolve(play=True)
    name = _chosen_run(opened, now, list(runs))
    text, target = clean(export.sentence_of(now)), opened.translation.text
    frames = _through(name, text, target, len(runs[name]))
    _controls(name, list(runs), now)
    seen = SnapshotSeries(name, frames, _whose(opened, now))
    if now.play:
        part(play, run_every=_TICK)(seen)
    else:
        part(show_snapshot)(seen)
    menu.finding(f"{name}/emergence")


def _whose(opened: Opened, now: State) -> str:
    if now.target is not None:
        return "your translation"
    return (
        f"the translation of {plain(opened.asked.model)}" if opened.asked.target is None else "the reference"
    )


def _through(name: str, text: str, target: str, count: int) -> tuple[Frame, ...]:
    """The sentence through all snapshots, with a bar while they read it."""
    bar = st.empty()

    def tell(step: int, read: int) -> None:
        bar.progress(read / count, f"Reading the sentence with the snapshot of step {step:,}")

    frames = births.through(name, text, target, tell)
    bar.empty()
    return frames


def _chosen_run(opened: Opened, now: State, runs: list[str]) -> str:
    """The run of the address, else that of the chosen model, else the usual one."""
    if now.run in runs:
        return str(now.run)
    if now.run is not None:
        inform(plain(f"There is no run “{labels.shorten(now.run, 40)}” with snapshots here."))
    return opened.asked.model if opened.asked.model in runs else runs[0]


def _controls(name: str, runs: list[str], now: State) -> None:
    """The choice of the run and of the kind, and Play."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if len(runs) > 1:
            with st.container(width=220):
                names = {each: each for each in runs}
                pickers.choose("run", "Training run", names, name, _take_run, texts=True)
        pickers.kind_picker(now.kind or "cross", born=None)
        st.toggle("Play", now.play, **pickers.control("birth.play", now.play, _take_play))


def _take_play(play: bool) -> None:
    session.change(play=play, snapshot=session.current().snapshot or 0)


def _take_run(name: str) -> None:
    session.change(run=name, snapshot=None, born=None)


@dataclass(frozen=True)
class SnapshotSeries:
    """A sentence through the snapshots of a run."""

    run: str  # name of the run
    frames: tuple[Frame, ...]  # the sentence at each snapshot
    whose: str  # translation that every snapshot reads

    @property
    def steps(self) -> list[int]:
        """The training step of each snapshot."""
        return [each.step for each in self.frames]


def play(seen: SnapshotSeries) -> None:
    """Draws the snapshot after that of the state."""
    chosen = (place(seen.steps, session.current().snapshot) + 1) % len(seen.frames)
    if chosen == len(seen.frames) - 1:
        session.rerun(snapshot=seen.steps[-1], play=False)
    session.resolve(snapshot=seen.steps[chosen])
    show_snapshot(seen)


def show_snapshot(seen: SnapshotSeries) -> None:
    """Draws the snapshot of the state."""
    now = session.current()
    chosen = place(seen.steps, now.snapshot)
    frame, kind = seen.frames[chosen], now.kind or "cross"
    _slider(seen, chosen, now.play)
    st.markdown(snapshot(seen.frames, chosen, seen.whose))
    source = models.find(seen.run)
    size, first = source.sizes[kind], runs.default_head(source, kind)
    head, _ = fit_head(kind, now.born, size, first)
    left, right = st.columns([1.05, 1], gap="medium")
    with left:
        _map(frame.forced.head(kind, *head))
    with right:
        tiles(frame.forced, kind, head)
        _losses(seen, chosen)
    with st.expander("What every snapshot writes on its own"):
        rows = [
            f"| {each.step:,} | {labels.number(each.loss)} | {plain(each.written) or '—'} |"
            for each in seen.frames
        ]
        st.markdown("\n".join(["| step | loss | translation |", "| ---: | ---: | --- |", *rows]))


def place(steps: list[int], step: int | None) -> int:
    """The snapshot (from 0) that is nearest to a step; the last one for None."""
    if step is None:
        return len(steps) - 1
    return min(range(len(steps)), key=lambda i: abs(steps[i] - step))


def _slider(seen: SnapshotSeries, chosen: int, playing: bool) -> None:
    steps = seen.steps
    st.select_slider(
        "Training step",
        steps,
        steps[chosen],
        format_func=lambda step: f"{step:,}",
        disabled=playing,
        **pickers.control("snapshot", steps[chosen], lambda step: _take(seen, int(step)), map(str, steps)),
    )


def _take(seen: SnapshotSeries, step: int) -> None:
    session.change(snapshot=step)


def _map(view: HeadView) -> None:
    panel(
        f"birth {view.kind}",
        lambda: heatmap(view, _MAP),
        captions.caption(view).replace("{step}", ""),
        lambda: cells(view),
        seeing=_SEEING,
        alt=captions.summary(view),
        audit=view.audit,
        width="content",
        scrolls=True,
        saved=not session.current().play,
    )


def tiles(shown: Translation, kind: str, head: Head) -> None:
    """Draws all heads of a kind; a click opens one."""
    heads = range(shown.config.n_heads)
    site = next(each for each in shown.config.sites.values() if each.kind.value == kind)
    found = [
        [Tile.of(shown.weights(kind, layer, i), shown.mask(kind, layer, i)) for i in heads]
        for layer in range(site.n_layers)
    ]

    def choose(picked: object) -> None:
        if isinstance(picked, (list, tuple)) and len(picked) == 2:
            session.change(born=(int(picked[0]), int(picked[1])))

    told = f"All heads of {captions.KIND_NAMES[kind].lower()}"
    key = f"training.tiles.{kind}.{site.n_layers}.{len(heads)}"
    chart(key, overview(found, kind, head, width=_TILES), f"{told}, {shown.model}", choose)
    st.caption(plain(f"{told} · {shown.model} · click a tile to open it"))


def _losses(seen: SnapshotSeries, chosen: int) -> None:
    line = Trend("this sentence", [each.loss for each in seen.frames], style.POSITIVE)

    def choose(picked: object) -> None:
        if isinstance(picked, int) and picked < len(seen.frames):
            _take(seen, seen.steps[picked])

    panel(
        "birth loss",
        lambda: over_snapshots(seen.steps, [line], "loss in nats", chosen, height=220),
        f"Loss of the given translation in nats per token, by training step · {seen.run}",
        lambda: table(seen),
        take=choose,
        saved=not session.current().play,
    )


def cells(view: HeadView) -> Table:
    """The weights of a map as rows of numbers for CSV; programs count from 0."""
    rows = [
        (i, query, j, key, float(view.weights[i, j]), bool(view.mask[i, j]))
        for i, query in enumerate(view.query_tokens)
        for j, key in enumerate(view.key_tokens)
    ]
    return [("query", "query token", "key", "key token", "weight", "may attend"), *rows]


def table(seen: SnapshotSeries) -> Table:
    """The loss and the translation of every snapshot, for CSV."""
    return [("step", "loss", "translation"), *((each.step, each.loss, each.written) for each in seen.frames)]


def snapshot(frames: Sequence[Frame], chosen: int, whose: str) -> str:
    """The loss of the translation at a snapshot, and what the model writes there on its own."""
    frame, first = frames[chosen], frames[0]
    text = f"**{_capital(after(frame.step))}**, {whose} costs **{labels.number(frame.loss)} nats** per token"
    if chosen:
        text += f" ({after(first.step)}: {labels.number(first.loss)})"
    if not frame.written.strip():
        return f"{text}. On its own, the model writes nothing."
    return f"{text}. On its own, the model writes: “{plain(labels.shorten(frame.written, 220))}”"


def after(step: int) -> str:
    """A place in training: `after 512 steps`."""
    return "before training" if step == 0 else f"after {step:,} step{'s' * (step != 1)}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
