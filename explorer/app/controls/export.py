"""Saving a figure: PNG and SVG made in the browser, self-contained HTML, and its numbers as CSV.

Each file holds the caption and the provenance; its name says what it shows, and of which sentence.
"""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import urlencode

import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import session
from explorer.app.address.parameters import as_params, carried
from explorer.app.address.state import State
from explorer.app.controls.parts import part
from explorer.app.server import cells, examples, models
from explorer.app.server.stores import Recent
from explorer.figures.base import labels
from explorer.figures.base.captions import badge
from explorer.figures.maps.export import printed
from explorer.linked.served import imported
from transformer import __version__
from transformer.view import AuditReport

_LONGEST = 40
"""Most letters that each part of a name keeps."""
_MOST_BYTES = 200
"""Most bytes of a name without its ending; file systems take 255."""
_TAKEN = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{i}" for port in ("com", "lpt") for i in "0123456789¹²³"),
}
"""Names that Windows keeps for itself."""


def file_name(
    # what the name says, the sentence first; each is cut after a word, and an empty one is left out
    *parts: str,
) -> str:
    """Joins texts to a name without an ending: lower-case words of any script, with hyphens between
    them."""
    name = "-".join(filter(None, map(_part, parts)))
    name = name.encode()[:_MOST_BYTES].decode(errors="ignore").rstrip("-")
    if not name:
        return "figure"
    return f"figure-{name}" if name in _TAKEN else name


def _part(text: str) -> str:
    letters = unicodedata.normalize("NFC", text.lower())
    words = "".join(
        letter if unicodedata.category(letter)[0] in "LMN" else " " for letter in letters
    ).split()
    shortened = ""
    for word in words:
        longer = f"{shortened}-{word}" if shortened else word[:_LONGEST]
        if len(longer) > _LONGEST:
            break
        shortened = longer
    return shortened


_SCRIPT = imported("linked_view/export.js")
_buttons = st.components.v2.component(
    "export_buttons",
    html='<div class="export-row"></div>',
    js=f"export default async (part) =>\n  (await {_SCRIPT}).show(part);",
    css=".export-row { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; }\n"
    ".export-row button { font: inherit; font-size: .875rem; color: var(--st-text-color); cursor: "
    "pointer; "
    "background: var(--st-background-color); border: 1px solid var(--st-border-color); "
    "border-radius: var(--st-button-radius); min-height: 2.5rem; padding: .25rem .75rem; }\n"
    ".export-row button:hover, .export-row button:focus-visible { border-color: "
    "var(--st-primary-color); }",
    isolate_styles=False,
)

Table = Sequence[Sequence[object]]
"""Numbers of a figure: a row of names, then the rows."""


@dataclass(frozen=True)
class Picture:
    """A figure that can be saved."""

    make: Callable[[], go.Figure]  # draws the figure; called only when a visitor asks for it
    caption: str  # kind, layer, head, step, quantity, model
    audit: AuditReport | None = None  # result of the checks; None if the caption already gives it
    derived: bool = (
        False  # whether the figure shows values derived from a trace, not the model's own arrays
    )
    name: str = ""  # what the name of the file calls the figure; empty for its name on the page
    # whether the figure belongs to the visitor's sentence, so that the name of the file says it
    sentence: bool = True
    # gives the numbers of the figure, to be saved as CSV; None if it offers none
    table: Callable[[], Table] | None = None
    title: str = ""  # in a list of figures; the beginning of its caption if empty

    def csv(self, now: State) -> str:
        """The numbers of the figure, after the caption and the provenance in cells that begin with
        #."""
        header = [[f"# {' '.join(line.split())}"] for line in self.lines(now)]
        return cells.written([*header, *(() if self.table is None else self.table())])

    def lines(self, now: State) -> list[str]:
        """What each file says of the figure: its caption, and the provenance of a state."""
        verdict = "" if self.audit is None else f" · {badge(self.audit, self.derived)['text']}"
        return [f"{self.caption}{verdict}", provenance(now)]


_PAGES = Recent[dict[str, tuple[State, Picture]]](32)
"""The pictures of the pages drawn last, by visitor: each holds the arrays that it shows."""


def pictures() -> dict[str, tuple[State, Picture]]:
    """What the visitor's page has drawn, by name, each with the state that it was drawn for."""
    return _PAGES.get(session.visit().name, dict)


def collect(name: str, picture: Picture) -> None:
    """Puts a picture that the page has drawn, by a name unique on the page, into the page's
    export."""
    pictures()[name] = session.current(), picture


@part()
def page_export() -> None:
    """Draws one export button for all pictures of a page."""
    with popover("export.page", 300) as opened:
        if opened and not (drawn := pictures()):
            gone = f"or {_PAGES.entries} others were drawn since; then open it again from the menu"
            st.caption(f"No picture is kept: the page has none, {gone}.")
        elif opened:
            titles = [picture.title or picture.caption for _, picture in drawn.values()]
            titles_by_name = {
                name: f"{i} · {labels.shorten(title, 60)}"
                for i, (name, title) in enumerate(zip(drawn, titles, strict=True), 1)
            }
            chosen = st.selectbox(
                "Picture",
                list(drawn),
                format_func=titles_by_name.__getitem__,
                key="export.page.picture",
            )
            state, picture = drawn[chosen]
            save("page", picture, picture.name or chosen, state)


@contextmanager
def popover(
    key: str,  # session key of the button
    # height of the content in px; the popover reserves it, so that it opens on a side with room
    height: int,
) -> Iterator[bool]:
    """The export button; yields whether its popover is open, so that a figure is made only then."""
    box = st.popover(
        "Export", type="tertiary", icon=":material/download:", key=key, on_change="rerun"
    )
    with box, st.container(height=height, border=False):
        yield bool(box.open)


def offer(
    name: str,  # unique on the page
    choice: dict[str, Picture],  # the figures by their display names
    now: State,  # the state that the link in the file opens again
) -> None:
    """The choice between several figures, and the buttons that save one."""
    chosen = next(iter(choice))
    if len(choice) > 1:
        key = f"export.{name}.{'.'.join(choice)}"
        chosen = st.segmented_control(
            "Figure", list(choice), default=chosen, required=True, key=key
        )
    picture = choice[chosen]
    save(name, picture, picture.name or (name if len(choice) == 1 else f"{name} {chosen}"), now)


def save(name: str, picture: Picture, what: str, now: State) -> None:
    """The buttons that save a figure, in a file that is called by the sentence and by what it
    shows."""
    figure = printed(picture.make(), picture.lines(now))
    file = file_name(sentence_of(now) if picture.sentence else "", what)
    files: dict[str, Callable[[], str]] = {"html": lambda: html(figure)}
    if picture.table is not None:
        files["csv"] = lambda: picture.csv(now)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        data = {"figure": figure.to_json(), "name": file}
        _buttons(key=f"export.{name}.buttons", data=data, width="content")
        for end, make in files.items():
            key = f"export.{name}.{end}"
            st.download_button(
                end.upper(), make, f"{file}.{end}", f"text/{end}", key=key, on_click="ignore"
            )
    bitmap = any(trace.type == "heatmap" for trace in figure.data)
    inside = " In an SVG, the cells of a map are one embedded bitmap." * bitmap
    st.caption(
        "The file holds the caption and the link. HTML opens offline and keeps its hover "
        f"texts.{inside}"
    )


def html(figure: go.Figure) -> str:
    """A self-contained page that opens without a network."""
    page: str = figure.to_html(include_plotlyjs=True, config={"displaylogo": False})
    return page


def sentence_of(now: State) -> str:
    """The text on the page: the visitor's, or the example that opens first."""
    return examples.passage(models.known(now.model), now).sentence


def provenance(now: State) -> str:
    """Software, date and the link that opens a state again."""
    text = examples.text_on(models.known(now.model), now.text)
    now = replace(now, text=text, model=now.model or next(iter(models.available()), None))
    link = urlencode(as_params(now), errors="replace")
    unsent = "" if carried(now) else " (the text is too long for a link)"
    return f"Attention explorer {__version__} · {datetime.now(UTC):%Y-%m-%d} · ?{link}{unsent}"
