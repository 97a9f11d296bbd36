"""The view of one run with all its attention on one cursor: the home page's, and a file's."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from explorer.figures.base.tasks import WORDS
from explorer.figures.maps.heatmap import LARGEST as MOST
from explorer.lenses.words.masked import Fills
from explorer.lenses.words.reading import ReadView
from explorer.linked.view.feeds import (
    about_row,
    choice,
    fades,
    is_off,
    map_feed,
    race_feed,
    switched_off,
)
from explorer.linked.view.strips import CURSORS, sides_of
from explorer.linked.view.wire import MapFeed, RaceFeed, Stop
from transformer.config import Head
from transformer.run import Translation
from transformer.text.words import is_mask


@dataclass(frozen=True)
class Layout:
    """The content of a linked view."""

    view: str  # name of the view; feeders name the view they feed
    style: str  # `home` (side by side) or `page` (one below the other)
    strips: tuple[str, ...]  # the token strips, in order: `source`, `target`
    plots: tuple[str, ...]  # names of the figures, in order
    focus: str  # the map that the sentence describes and the arrow keys move on
    cursor: str = "step"  # what the slider moves: `step` or `source`


WALL = "wall"
"""The plot of all heads of a kind, each as a tile."""
HOME = Layout(
    view="home",
    style="home",
    strips=("source", "target"),
    plots=("cross", "encoder", "decoder", "next"),
    focus="cross",
)
"""That of a run with every kind of attention, and steps."""


def home(run: Translation) -> Layout:
    """The view of a run: its own strips and kinds, the cursor over the queries of the last kind,
    and the next token if it has steps."""
    plots = {*map(str, run.config.sites)}
    if run.steps or run.config.mask_id is not None:
        plots.add("next")
    return replace(
        HOME,
        strips=tuple(sides_of(run)),
        plots=tuple(name for name in HOME.plots if name in plots),
        focus=str(run.config.last_kind),
        cursor=CURSORS[run.config.cursor_side],
    )


LARGEST = 760
"""Px of a map at which every label fits; the browser draws each map as large as the window
allows."""
TOUR = {
    "encoder": (
        "The encoder reads the whole sentence once. Each row is a source token that attends "
        "to all tokens."
    ),
    "controls": (
        "The decoder then writes one token per step. Move the cursor with the arrow keys, or "
        "press play."
    ),
    "decoder": (
        "The decoder's self-attention only looks back: later tokens are masked. Hatching shows "
        "masked cells."
    ),
    "cross": (
        "Cross-attention looks from the token being written to the source. A ring marks this "
        "step's row."
    ),
    "next": ("The model then computes a probability for every token. The chosen token is bold."),
}
"""By the part of the view that a stop of the tour is about, what it says of a run with steps."""
STILL_TOUR = {
    "encoder": "Each row is a token that attends to all tokens of the text, before and after it.",
    "controls": (
        "Move the cursor over the tokens with the arrow keys, or press play. A ring marks its row."
    ),
    "decoder": "Each row is a token that attends to itself and the tokens before it.",
    "cross": "Each row is a token that attends to the tokens of the source.",
}
"""The same of a run without steps, of which every token is there from the start."""


def stops(run: Translation, position: int) -> list[Stop]:
    """The tour of a run's view; from the second stop on, the cursor goes to a position."""
    texts = STILL_TOUR
    if run.steps:
        texts = TOUR
    plots = {*map(str, run.config.sites), "controls", "next"}
    tour: list[Stop] = [
        {"plot": plot, "text": text, "step": position}
        for plot, text in texts.items()
        if plot in plots
    ]
    tour[0]["step"] = None
    return tour


def head_map(
    trace: str,
    run: Translation,
    view: ReadView,
    lengths: tuple[int, int],
    opens: Head | None,
    *,
    roles: Sequence[Sequence[str]] = (),
    scale: str = "linear",
    largest: int = LARGEST,
    sums: bool = False,
    most: int = MOST,
) -> MapFeed:
    """A map with the choice of the heads of its kind; a head that is off in the run is drawn so."""
    kind = str(view.kind)
    head = (view.layer, view.head)
    role = roles[view.layer][view.head] if roles else ""
    feed = map_feed(trace, view, largest, scale, lengths, sums=sums, role=role, most=most)
    feed["about"] = about_row(run, kind)
    feed["fade"] = fades(run, kind)
    if is_off(run, kind, head):
        feed = switched_off(feed, view, role)
    if opens is not None:
        size = run.config.sizes[kind]
        feed["choice"] = choice(kind, head, size, opens, roles, title=view.title)
    return feed


def fills_feed(
    trace: str,
    run: Translation,
    fills: Fills,
    offered: Sequence[Sequence[int | None]] | None = None,
) -> RaceFeed:
    """The candidates in the place of each token, as if it were masked; those of a mask are free."""
    clicks = "" if offered is None else "click another to put it there · "
    feed = race_feed(
        trace,
        fills,
        f"{clicks}what the model predicts if this token alone is masked, too",
        None if offered is None else (offered, []),
        follows="source",
        title="This word, masked",
        puts="put it in its place",
    )
    chosen = zip(run.source_tokens, feed["chosen"], strict=True)
    feed["chosen"] = [-1 if is_mask(piece) else place for piece, place in chosen]
    return feed


def next_feed(
    trace: str,
    run: Translation,
    drawing: str = "",
    offered: tuple[Sequence[Sequence[int | None]], list[list[int]]] | None = None,
) -> RaceFeed:
    """The candidates of each step, with the way in which the run chose among them."""
    if run.method == "forced":
        origin = f"your {WORDS[run.config.task].output}, not the model's"
    elif drawing and run.method.startswith("sample-"):
        origin = f"decoding: {run.method}, {drawing}"
    else:
        origin = f"decoding: {run.method}"
    clicks = "" if offered is None else "click another to continue · "
    return race_feed(trace, run.steps, f"{clicks}the chosen token in bold · {origin}", offered)
