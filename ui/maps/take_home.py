"""The export button of a linked view: its figures, what is on the screen as JSON, the whole run as NPZ."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from figures.base import captions, labels
from figures.maps.export import marked
from transformer import Translation, save_trace, save_view
from transformer.exports.npz import model_digest
from transformer.exports.view import Selection
from transformer.lenses.reading import ReadView
from transformer.model.transformer import Transformer
from transformer.trace.view import HeadView
from ui.address import session
from ui.controls.export import Picture, file_name, offer, popover
from ui.maps.explorer import Scene, head, place, read_head
from ui.server import catalogue, runs
from ui.server.opened import Opened

KEY = "export.run"


@st.fragment
def take_home(scene: Scene, more: Callable[[], dict[str, Picture]] = dict) -> None:
    """Draws the button; nothing is made before it is opened.

    Args:
        scene: the linked view.
        more: makes figures that the linked view draws without Plotly, by the name that the visitor reads.
    """
    with popover(KEY, 350) as opened:
        if opened:
            offer("run", {**more(), **_maps(scene), **_bars(scene)})
            _run(scene.opened, head(scene.opened, scene.kinds[-1]))


def _maps(scene: Scene) -> dict[str, Picture]:
    """The maps on the screen, with the mark of the cursor."""
    drawn = [kind for kind in scene.kinds if kind in scene.now.plots]
    return {kind: _map(scene, kind) for kind in drawn}


def _map(scene: Scene, kind: str) -> Picture:
    view, scale = read_head(scene.opened, kind), session.current().scale
    row, column = place(scene.opened, kind)
    key, later = column if kind == "cross" else None, scene.fade and kind != "encoder"
    return Picture(
        lambda: marked(view, row, key, later, scale=scale),
        caption_of(view, scene.opened, scale),
        view.audit,
        view.derived,
    )


def caption_of(view: ReadView, opened: Opened, scale: str | None) -> str:
    """The caption of a map, with the step of the cursor; `scale` as in `figures.base.captions.caption`."""
    steps = len(opened.translation.target_tokens)
    step = "" if view.kind == "encoder" else f" · step {labels.count(session.cursor().step)} of {steps}"
    whole = runs.lengths(opened.translation, view.kind)
    return captions.caption(view, scale, whole).replace("{step}", step)


def _bars(scene: Scene) -> dict[str, Picture]:
    """The other figures of the linked view, as they were fed to it."""
    return {name: _bar(scene, feed) for name, feed in scene.extra().items() if "figure" in feed}


def _bar(scene: Scene, feed: dict[str, Any]) -> Picture:
    run = scene.opened.translation
    step = f"step {labels.count(session.cursor().step)} of {len(run.target_tokens)}"
    model = f"{run.model} ({captions.norm_name(run.config.norm)})"
    return Picture(lambda: _drawn(scene, feed), " · ".join((feed["title"], feed["caption"], step, model)))


def _drawn(scene: Scene, feed: dict[str, Any]) -> go.Figure:
    spec = json.loads(feed["figure"])
    data, layout, frames = spec["data"], spec["layout"], spec["frames"]
    frame = frames[at] if (at := _frame(scene, feed, len(frames))) is not None else {}
    data[0] |= frame.get("data", [{}])[0]
    return go.Figure(data, layout).update_layout(frame.get("layout", {}))


def _frame(scene: Scene, feed: dict[str, Any], count: int) -> int | None:
    """Which frame stands for the place of the cursor; None where none does."""
    if not feed.get("follows"):
        return None
    position = place(scene.opened, "encoder")[0] if feed["follows"] == "source" else session.cursor().step
    spans = feed.get("spans") or [(i, i + 1) for i in range(count)]
    return next((i for i, (start, stop) in enumerate(spans) if start <= position < stop), None)


def _run(opened: Opened, view: HeadView) -> None:
    run, name = opened.translation, file_name(f"{opened.translation.model} {opened.asked.text}")
    model = (
        catalogue.translator(opened.asked.model).model if catalogue.has_model(opened.asked.model) else None
    )
    selection = _selection()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("This run")
        st.download_button(
            "JSON",
            lambda: view_file(run, view, selection, model),
            f"{name}.json",
            "application/json",
            key=f"{KEY}.json",
            on_click="ignore",
        )
        st.download_button(
            "NPZ",
            lambda: trace_file(run, model),
            f"{name}.npz",
            "application/octet-stream",
            key=f"{KEY}.npz",
            on_click="ignore",
        )
    st.caption(
        f"JSON: tokens, steps, alternatives, your selection, the {view.kind} matrix. NPZ: the whole trace. "
        "Both open again under “Open a file” and in Python, also where the model is not."
    )


def _selection() -> Selection:
    cursor, now = session.cursor(), session.current()
    heads = {kind: head for kind in catalogue.KINDS if (head := getattr(now, kind)) is not None}
    return Selection(cursor.step, cursor.source, heads)


def view_file(
    run: Translation, view: HeadView, selection: Selection, model: Transformer | None = None
) -> bytes:
    """The content of the JSON file; the digest of the model goes into it."""
    if model is not None:
        run = replace(run, model_sha256=model_digest(model))
    file = io.BytesIO()
    save_view(run, view, file, selection)
    return file.getvalue()


def trace_file(run: Translation, model: Transformer | None) -> bytes:
    """The content of the NPZ file."""
    file = io.BytesIO()
    save_trace(run, file, model)
    return file.getvalue()
