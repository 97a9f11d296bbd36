"""A linked view and what feeds it: the part that all pages with a cursor share.

The outer fragment holds the head controls and the feeders, the inner one the view and the menu. A step
runs the inner one only; another head, or a step that leaves the drawn window, runs the outer one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from figures.base.labels import is_special
from transformer.lenses.reading import Reading, ReadView, read_view
from transformer.trace.view import HeadView
from ui import linked_view
from ui.address import session
from ui.linked_view import Head, Layout, Limits
from ui.maps import read_as
from ui.server import catalogue, examples, runs
from ui.server.opened import Opened
from ui.shell import frame

_KEY = "explorer"


@dataclass(frozen=True)
class Scene:
    """One page's linked view.

    Attributes:
        layout: what the view holds; or gives it, where that depends on the state.
        opened: the sentence.
        kinds: the kinds of which one head is drawn as a map.
        extra: makes the payloads of the other figures, by name.
        below: draws the controls under the view.
        above: draws the controls over the view.
        tour: stops of the tour.
        fade: whether rows still to come are faded.
        largest: the largest side of a map, in px.
        follows: whether what stands below shows the cursor's place, and is drawn again when it moves.
    """

    layout: Layout | Callable[[], Layout]
    opened: Opened
    kinds: tuple[str, ...]
    extra: Callable[[], dict[str, dict[str, Any]]]
    below: Callable[[], None]
    tour: tuple[tuple[str, str], ...] = ()
    fade: bool = True
    largest: int = 360
    follows: bool = False
    above: Callable[[], None] | None = None

    @property
    def now(self) -> Layout:
        """What the view holds now."""
        return self.layout if isinstance(self.layout, Layout) else self.layout()

    @property
    def limits(self) -> Limits:
        """How far the cursor may go."""
        translation = self.opened.translation
        return Limits(self.opened.trace, len(translation.target_tokens), len(translation.source_tokens))


@st.fragment(key=_KEY)
def explorer(scene: Scene) -> None:
    """Draws the view, the controls under it, and sends the figures."""
    with st.container(key="linked"):
        # One element, however much it draws: the fragment of the view goes by its place.
        with st.container():
            if scene.above is not None:
                scene.above()
        _view(scene)
        scene.below()
    with st.container(key="feeders"):
        linked_view.feed(scene.now, "strips", _strips(scene))
        for kind in scene.kinds:
            if kind in (*scene.now.plots, scene.now.focus):
                linked_view.feed(scene.now, kind, _map(scene, kind))
        for name, payload in scene.extra().items():
            linked_view.feed(scene.now, name, payload)


@st.fragment
def _view(scene: Scene) -> None:
    key = session.view_key(scene.now.view)
    linked_view.mount(scene.now, scene.opened.trace, session.cursor(), key, lambda: _moved(scene))
    frame.menu()


def _moved(scene: Scene) -> None:
    before = _drawn(scene)
    session.on_linked_view(scene.now.view, scene.limits, catalogue.sizes(scene.opened.asked.model))
    if _drawn(scene) != before:
        st.rerun(_KEY)


def _drawn(scene: Scene) -> list[object]:
    """What the maps show, the heads and their windows, and the cursor where something follows it."""
    translation, cursor = scene.opened.translation, session.cursor()
    shown: list[object] = [
        (chosen(kind), read_as.window(translation, kind, place(scene.opened, kind))) for kind in scene.kinds
    ]
    return [*shown, (cursor.step, cursor.source)] if scene.follows else shown


def chosen(kind: str) -> Head:
    """The head of a kind that the visitor looks at, from 0."""
    head: Head = getattr(session.current(), kind)
    return head


def place(opened: Opened, kind: str) -> tuple[int, int]:
    """The cell of a map that its window must hold: row and column, from 0."""
    cursor = session.cursor()
    follow = runs.followed(opened.translation, chosen("cross"))
    source = follow[cursor.step] if cursor.source is None else cursor.source
    return {
        "encoder": (source, source),
        "decoder": (cursor.step, cursor.step),
        "cross": (cursor.step, source),
    }[kind]


def head(opened: Opened, kind: str) -> HeadView:
    """The head of a kind that the visitor looks at, in the window around the cursor."""
    return runs.head(opened.translation, kind, chosen(kind), place(opened, kind))


def read_head(opened: Opened, kind: str) -> ReadView:
    """The same head as the visitor reads it: in words, with tokens hidden, in a window of their choice."""
    return read_as.view(opened.translation, kind, chosen(kind), place(opened, kind))


def _map(scene: Scene, kind: str) -> dict[str, Any]:
    """The feed of a map; where none is drawn, and the head is only spoken of, as the model has it."""
    opened = scene.opened
    drawn = kind in scene.now.plots
    view = read_head(opened, kind) if drawn else read_view(head(opened, kind), Reading())
    payload = linked_view.map_feed(
        opened.trace,
        view,
        scene.largest,
        session.current().scale,
        runs.lengths(opened.translation, kind),
        sums=scene.now.style == "page",
    )
    payload["fade"] = scene.fade and kind != "encoder"
    return payload


def _strips(scene: Scene) -> dict[str, Any]:
    opened, translation = scene.opened, scene.opened.translation
    return linked_view.strips_feed(
        opened.trace,
        translation.source_tokens,
        translation.decoder_input_tokens,
        translation.target_tokens,
        follow=runs.followed(translation, chosen("cross")),
        glosses=opened.example.gloss if opened.example else None,
        tour=_tour(scene),
        claim=_claim(scene),
    )


def _claimed_step(opened: Opened) -> int | None:
    if opened.example is None:
        return None
    return examples.claim_step(opened.example, opened.translation.target_tokens)


def _tour(scene: Scene) -> list[dict[str, Any]]:
    step = _claimed_step(scene.opened)
    if step is None:
        text = [i for i, token in enumerate(scene.opened.translation.target_tokens) if not is_special(token)]
        step = text[len(text) // 2] if text else 0
    return [
        {"plot": plot, "text": text, "step": None if i == 0 else step}
        for i, (plot, text) in enumerate(scene.tour)
    ]


def _claim(scene: Scene) -> dict[str, Any] | None:
    opened = scene.opened
    step = _claimed_step(opened)
    if opened.example is None or step is None or "cross" not in scene.kinds:
        return None
    return {"step": step, "text": opened.example.claim.text}
