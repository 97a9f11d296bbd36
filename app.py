"""Home page: type a sentence, watch the model translate it, and look into its attention."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.kinds import Moves
from explorer.app.controls import formula, seen
from explorer.app.maps import display, filling
from explorer.app.maps.explorer import Later, Scene, Strips, continue_with, explorer, offered
from explorer.app.maps.looking import Looks
from explorer.app.maps.run_export import run_export
from explorer.app.server.view import View
from explorer.app.shell import changed, doubt, frame, paragraph, sentence, strip
from explorer.app.shell.model_picker import pick_model
from explorer.figures.base import labels
from explorer.linked.view.home import LARGEST, WALL, Layout, fills_feed, home, next_feed
from explorer.linked.view.wire import Feed, RaceFeed

_READING = (
    "A row is a query, a column is a key. The fuller the colour, the larger the weight, from 0 to "
    "1. Hatched cells are masked."
)
_STEPS = "The cursor chooses the decode step: a ring marks its row. Later rows are faded."
_TOKENS = "The cursor chooses a token: a ring marks its row."
_LINES = "The lines between the tokens show the row of the cursor in the large map."
_UNDIVIDED = r"\mathrm{softmax}\!\left(QK^{\top} + \mathrm{mask}\right)V"
_FORMULA = r"\mathrm{softmax}\!\left(\frac{QK^{\top}}{\sqrt{d_k}} + \mathrm{mask}\right)V"


def _wall() -> ModuleType:
    """The room of the wall of heads, with which PyTorch comes: the first picture has none."""
    from explorer.app.maps import wall

    return wall


def _layout(opened: View) -> Layout:
    """What the view holds: where one kind of attention leaves room, all of its heads, too."""
    layout = home(opened.translation)
    sizes = opened.translation.config.sizes
    if len(sizes) > 1 or max(sizes[opened.kinds[0]]) == 1:
        return layout
    return replace(layout, plots=(*layout.plots, WALL))


def _candidates(opened: View) -> RaceFeed:
    """The candidates for the next token of each step; without steps, for each word if masked."""
    run = opened.translation
    if run.steps:
        return next_feed(opened.key, run, str(opened.run_key.drawing), offered(opened))
    return fills_feed(opened.key, run, filling.fills(opened), filling.offered(opened))


def show(opened: View) -> None:
    """Draws the linked view of a sentence."""
    layout = _layout(opened)
    has_wall = WALL in layout.plots

    def feeds(now: State, looks: Looks) -> dict[str, Feed]:
        drawn = dict[str, Feed]()
        if "next" in layout.plots:
            drawn["next"] = _candidates(opened)
        if has_wall:
            drawn |= _wall().feeds(looks[opened.kinds[0]], now)
        return drawn

    def below(now: State, looks: Looks) -> None:
        if has_wall:
            _wall().controls(looks[opened.kinds[0]], now)
        with st.container(horizontal=True, vertical_alignment="center", key="under-home"):
            if opened.source.fills and opened.source.has_model:
                display.mask(opened, now)
            display.popover(opened.kinds, now)
            display.measure(opened, now)
            display.shares(opened, now)
            display.cell(looks[opened.kinds[-1]])
            display.why(opened)
            display.tables(lambda: [looks[kind].read() for kind in opened.kinds])
            seen(*_explained(opened))
            run_export(scene)

    room = st.container(key="doubt-room")  # above the picture, but filled after it
    go_on: Callable[[View, int, int], Moves] = continue_with
    if not opened.translation.steps:
        go_on = filling.fill_word
    scene = Scene(
        layout=layout,
        opened=opened,
        kinds=opened.kinds,
        extra=feeds,
        below=below,
        tour=True,
        largest=LARGEST,
        strips=lambda now: Strips(shades=display.shaded(opened) if now.shares else ()),
        later=Later(lambda: doubt.due(opened), lambda: doubt.begin(opened)),
        follows=opened.source.fills,
        go_on=go_on,
    )
    explorer(scene)
    with room:
        doubt.tell(opened)


def _explained(opened: View) -> tuple[str, str]:
    """Explanation and formula: that of the paper, or of the only attention that a model has."""
    first, *further = opened.translation.config.sites.values()
    lines = ""
    if len(opened.sides) > 1:
        lines = _LINES
    rows = _STEPS if opened.translation.steps else _TOKENS
    seeing = " ".join(filter(None, (_READING, rows, lines, labels.signs(opened.tokens(True)))))
    if not further:
        only = formula.attention(first.kind, "none", first.causal, first.score)
        return f"One attention map. {seeing}", only
    explanation = f"All attention maps of one run. {seeing}"
    if first.score == "scaled_dot":
        return explanation, _FORMULA
    return explanation, _UNDIVIDED


now = frame.open_page("app")
source = pick_model(now)
frame.heading("app", now, source)
if source is not None:
    with st.container(key="top"):
        sentence.sentence_box(source, now)
        sentence.below_box(source, now)
    paragraph.draw(source, now, translated=True)
    doubt.leave()
    opened = sentence.open_sentence(source, now)
    now = session.current()
    frame.show_notices(now, () if opened is None else opened.notes)
    changed.show_changes(now, opened)
    if opened is not None:
        if now.lesson is not None:
            strip.ask(opened)
        show(opened)
