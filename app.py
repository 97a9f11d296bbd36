"""Home page: type a sentence, watch the model translate it, and look into its attention."""

import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import formula, seen
from explorer.app.maps import display
from explorer.app.maps.explorer import Later, Scene, Strips, explorer, offered
from explorer.app.maps.looking import Looks
from explorer.app.maps.run_export import run_export
from explorer.app.server.view import View
from explorer.app.shell import changed, doubt, frame, paragraph, sentence, strip
from explorer.app.shell.model_picker import pick_model
from explorer.figures.base import labels
from explorer.linked.view.home import HOME, LARGEST, TOUR, next_feed

_READING = (
    "A row is a query, a column is a key. The fuller the colour, the larger the weight, from 0 to "
    "1. Hatched cells are masked. The cursor chooses the decode step: a ring marks its row, and "
    "the lines between the tokens show that row of the large map. Later rows are faded."
)
_UNDIVIDED = r"\mathrm{softmax}\!\left(QK^{\top} + \mathrm{mask}\right)V"
_FORMULA = r"\mathrm{softmax}\!\left(\frac{QK^{\top}}{\sqrt{d_k}} + \mathrm{mask}\right)V"


def show(opened: View) -> None:
    """Draws the linked view of a sentence."""

    def below(now: State, looks: Looks) -> None:
        with st.container(horizontal=True, vertical_alignment="center", key="under-home"):
            display.popover(opened.kinds, now)
            display.measure(opened, now)
            display.shares(opened, now)
            display.cell(looks[opened.kinds[-1]])
            display.why(opened)
            display.tables(lambda: [looks[kind].read() for kind in opened.kinds])
            seen(*_explained(opened))
            run_export(scene)

    plots = {*opened.kinds, "controls", "next"}
    room = st.container(key="doubt-room")  # above the picture, but filled after it
    scene = Scene(
        layout=HOME,
        opened=opened,
        kinds=opened.kinds,
        extra=lambda now, looks: {
            "next": next_feed(
                opened.key, opened.translation, str(opened.run_key.drawing), offered(opened)
            )
        },
        below=below,
        tour=tuple(stop for stop in TOUR if stop[0] in plots),
        largest=LARGEST,
        strips=lambda now: Strips(shades=display.shaded(opened) if now.shares else ()),
        later=Later(lambda: doubt.due(opened), lambda: doubt.begin(opened)),
    )
    explorer(scene)
    with room:
        doubt.tell(opened)


def _explained(opened: View) -> tuple[str, str]:
    """Explanation and formula: that of the paper, or of the only attention that a model has."""
    first, *further = opened.translation.config.sites.values()
    seeing = f"{_READING} {labels.signs(opened.tokens(True))}".rstrip()
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
    frame.show_notices(now, () if opened is None else opened.translation.notes)
    changed.show_changes(now, opened)
    if opened is not None:
        if now.lesson is not None:
            strip.ask(opened)
        show(opened)
