"""Heads as one figure for a paper: maps without cursor and fading, as vectors, in real sizes.

In a notebook: `Path("figure.pdf").write_bytes(sheet([view], Form("pdf", width=8.5)).data)`.
"""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from figures.base import labels, style
from figures.base.captions import KIND_NAMES
from figures.base.shape import HeadLike
from figures.maps.export import plain, wrapped
from figures.maps.heatmap import check
from figures.paper import draw
from figures.paper.fonts import families, without_truetype
from figures.paper.form import INCH, MOST_HEADS, POINTS, Form, Paper
from figures.paper.layout import LINE, Layout, Measure, Panel, lay_out
from figures.paper.legend import Legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DRAWING = threading.Lock()
"""matplotlib's settings belong to the whole process, so one figure is drawn at a time."""
_SMALL = 0.8
"""Font size of the footnote, as a multiple of the other text's."""
_MAKER = "Attention explorer"


def sheet(
    views: Sequence[HeadLike],  # the heads, each with at most 64 x 64 cells
    form: Form,  # the format of the file
    # what the figure shows and where it comes from, in paragraphs. The file's metadata holds them;
    # `form.footnote` prints them too.
    about: Sequence[str] = (),
) -> Paper:
    """Draws heads on one sheet, all with cells of one size.

    Raises:
        ValueError: there is no head, or there are too many; a head has too many cells, or labels that do not
            match them; the labels leave no room for the maps.
    """
    if not 1 <= len(views) <= MOST_HEADS:
        raise ValueError(f"A sheet holds 1 to {MOST_HEADS} heads, not {len(views)}.")
    for view in views:
        check(view)
    paragraphs = [plain(each) for each in about]
    written = [*paragraphs * form.footnote, *_words(views, form)]
    fonts, missing = families(written)
    with _DRAWING, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the notes name the letters without a font
        return _drawn(views, form, paragraphs, fonts, missing)


def _words(views: Sequence[HeadLike], form: Form) -> list[str]:
    """Everything that is written above the footnote."""
    sides = [
        side for view in views for side in (view.query_tokens, view.predicted_tokens or (), view.key_tokens)
    ]
    tokens = [name for side in sides for name in labels.names(side)]
    titles = [text for title in _titles(views) for text in title]
    return [*tokens, *titles, *(text for text, _ in style.stops(form.scale)), "…"]


def _titles(views: Sequence[HeadLike]) -> list[tuple[str, ...]]:
    """Title above each map; none above a single map, since the paper's own caption names it."""
    if len(views) == 1:
        return [()]
    mixed = len({view.kind for view in views}) > 1
    return [_title(f"({chr(ord('a') + i)})", view, mixed) for i, view in enumerate(views)]


def _title(letter: str, view: HeadLike, mixed: bool) -> tuple[str, ...]:
    kind = f"{view.kind}, " * mixed
    long = f"{letter} {kind}layer {labels.count(view.layer)}, head {labels.count(view.head)}"
    return long, f"{letter} {kind}{labels.head_name(view.layer, view.head)}", letter


def _drawn(
    views: Sequence[HeadLike], form: Form, about: list[str], fonts: Sequence[str], missing: Sequence[str]
) -> Paper:
    import matplotlib

    settings: Any = {
        "font.family": [*fonts, "sans-serif"],  # an SVG names them all
        "font.sans-serif": fonts[:1],
        "hatch.linewidth": 0.4,
        "pdf.fonttype": 3 if without_truetype(fonts) else 42,
        "svg.fonttype": "none",  # text stays text
        "svg.hashsalt": _MAKER,
    }
    with matplotlib.rc_context(settings):
        measure = lru_cache(lambda text: draw.text_width(text, form.letters))
        panels = [Panel.of(*each, form, measure) for each in zip(views, _titles(views), strict=True)]
        laid = lay_out(panels, form)
        figure, height = _figure(laid, form, _broken(about, form, measure) if form.footnote else [], measure)
        data = _saved(figure, form, _named(views), about)
    return Paper(data, form.width, height / POINTS * INCH, _notes(laid, form, fonts, missing))


def _figure(laid: Layout, form: Form, footnote: Sequence[str], measure: Measure) -> tuple[Figure, float]:
    """Draws everything, and returns the height in pt too."""
    views = [panel.view for panel in laid.panels]
    kinds = list(dict.fromkeys(view.kind for view in views))
    masked = any(not view.mask.all() for view in views)
    legend = Legend(kinds, masked, form.scale, form.letters, form.points, measure)
    small, below = LINE * _SMALL * form.letters, laid.bottom + 0.8 * LINE * form.letters
    height = below + legend.height + small * len(footnote)
    figure, axes = draw.blank(form.points, height)
    pen = draw.Pen(axes, form.letters, form.scale)
    for place in range(len(views)):
        pen.head(laid, place)
    legend.draw(pen, below)
    for i, text in enumerate(footnote):
        look = {"fontsize": _SMALL * form.letters, "color": draw.GREY}
        pen.write(0, below + legend.height + (i + 0.75) * small, text, **look)
    return figure, height


def _broken(about: Sequence[str], form: Form, measure: Measure) -> list[str]:
    """The paragraphs of the footnote, broken into lines as wide as the sheet."""
    sample = "".join(about)[:400] or " "
    fitting = 0.96 * form.points / (_SMALL * measure(sample) / len(sample))
    return [line for each in about for line in wrapped(each, int(fitting))]


def _named(views: Sequence[HeadLike]) -> str:
    """Description of the sheet, for the metadata."""
    named = [f"{KIND_NAMES[view.kind]}, {labels.head_phrase(view.layer, view.head)}" for view in views]
    return "; ".join(dict.fromkeys(named))


def _saved(figure: Figure, form: Form, title: str, about: Sequence[str]) -> bytes:
    """The bytes of the file; without the time, so that the same figure gives the same bytes."""
    text = "\n".join(about)
    facts: dict[str, dict[str, str | None]] = {
        "pdf": {"Title": title, "Subject": text, "Creator": _MAKER, "CreationDate": None},
        "svg": {"Title": title, "Description": text, "Creator": _MAKER, "Date": None},
        "png": {"Title": title, "Description": text, "Software": _MAKER},
    }
    file = io.BytesIO()
    kind, dpi = form.saved
    figure.savefig(file, format=kind, dpi=dpi, metadata=facts[kind])
    return file.getvalue()


def _notes(laid: Layout, form: Form, fonts: Sequence[str], missing: Sequence[str]) -> tuple[str, ...]:
    """Remarks on the figure for the visitor."""
    notes = []
    if laid.step > 1:
        notes.append(
            f"At {form.letters:g} pt, only one label in {laid.step} has room: choose a larger width, a "
            "smaller font, or fewer maps per row."
        )
    if missing:
        shown = " ".join(missing[:12]) + " …" * (len(missing) > 12)
        notes.append(
            f"No font on this machine has {shown}, so boxes stand in their place: install the Noto font of "
            "the script."
        )
    if form.file == "pdf" and (outlined := without_truetype(fonts)):
        notes.append(
            "Some publishers refuse Type 3 fonts. This PDF holds one, because there is no TrueType form of "
            f"{' and '.join(outlined)}."
        )
    return tuple(notes)
