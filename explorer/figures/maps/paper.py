"""Heads as one figure for a paper: maps without cursor and fading, as vectors, in real sizes.

In a notebook: `Path("figure.pdf").write_bytes(sheet([view], Form("pdf", width=8.5))[0])`.
"""

from __future__ import annotations

import io
import math
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontEntry, FontPath, fontManager, get_font
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend_handler import HandlerTuple
from matplotlib.patches import Patch, Rectangle
from matplotlib.transforms import Bbox

from explorer.figures.base import labels, style
from explorer.figures.base.quantity import quantity
from explorer.figures.base.shape import HeadLike, named
from explorer.figures.maps.export import plain
from explorer.figures.maps.heatmap import check, masked_blocks, row_tokens

INCH = 2.54
_PAGE, _AIR = 690, 2 / 72
"""The maps' greatest height in pt, a journal's page; inches left free above and below what is drawn."""
_GREY, _HATCH = "#606060", "/////"
_FIRST, _NEXT = ("Noto Sans", "DejaVu Sans"), ("Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans", "Noto")
"""Families for most texts, the second of which comes with matplotlib; beginnings of others, best first."""
_DRAWING = threading.Lock()
"""matplotlib's settings belong to the whole process, so one figure is drawn at a time."""


@dataclass(frozen=True)
class Form:
    """The form of a figure for a paper."""

    file: str = "pdf"  # pdf, svg or png
    width: float = 8.5  # width in cm; the height follows from it
    letters: float = 8.0  # the font size in pt
    columns: int = 3  # maps per row
    scale: str = "linear"  # how weights become colours, one of `style.SCALES`


def sheet(
    views: Sequence[HeadLike],  # the heads, each with at most 64 x 64 cells
    form: Form,
    about: Sequence[str] = (),  # what it shows and where it comes from, in paragraphs for the file's metadata
) -> tuple[bytes, float, list[str]]:
    """Draws heads on one sheet, all with cells of one size.

    Returns:
        The file, its height in cm, and what its reader should know about it, one sentence each.

    Raises:
        ValueError: a head has too many cells, or labels that do not match them.
        UserWarning: the labels leave no room for the maps.
    """
    for view in views:
        check(view)
    fonts, missing = families("".join(name for view in views for side in _names(view) for name in side))
    outlined = [name for name in fonts if not _entries()[name].fname.lower().endswith(".ttf")]
    lines, data = [plain(each) for each in about], io.BytesIO()
    metadata = {"Title": "".join(lines[:1])}
    metadata["Subject" if form.file == "pdf" else "Description"] = "\n".join(lines)
    with _DRAWING, matplotlib.rc_context(_settings(form, fonts, outlined)), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the notes name the letters without a font
        figure = _grid(views, form)
        step = _lay_out(figure, form)
        _add_legend(figure, views, form)
        drawn = figure.get_tightbbox()
        page = Bbox([[0, drawn.y0 - _AIR], [figure.get_figwidth(), drawn.y1 + _AIR]])
        figure.savefig(data, format=form.file, dpi=300, metadata=metadata, bbox_inches=page)
    notes = (
        (step > 1, f"Only one label in {step} has room: choose a larger width, or a smaller font."),
        (missing, f"No font here has {' '.join(missing[:12])}: install the Noto font of the script."),
        (outlined, f"A PDF holds {' and '.join(outlined)} as Type 3, which some publishers refuse."),
    )
    return data.getvalue(), page.height * INCH, [note for holds, note in notes if holds]


def families(text: str) -> tuple[list[str], list[str]]:
    """The fonts that together draw a text, best first, and the letters that none of them has."""
    variants = set(map(chr, range(0xFE00, 0xFE10)))  # choose between two drawings of the letter before
    fonts = {letter: _font(letter) for letter in sorted(set(text) - variants) if not letter.isspace()}
    used = [name for name in _entries() if name in _FIRST or name in fonts.values()]
    return used, [letter for letter, font in fonts.items() if font is None]


@lru_cache(maxsize=20_000)
def _font(letter: str) -> str | None:
    """The best family that has a letter."""
    files = ((name, FontPath(each.fname, each.index)) for name, each in _entries().items())
    return next((name for name, file in files if get_font(file).get_char_index(ord(letter))), None)


@lru_cache(maxsize=1)
def _entries() -> dict[str, FontEntry]:
    """The upright, regular font of every installed family, best first."""
    upright = [each for each in fontManager.ttflist if each.style == "normal"]
    regular = {each.name: each for each in upright if each.weight in (400, "normal", "regular", "book")}
    regular.pop("Last Resort High-Efficiency", None)  # draws a frame in place of every letter

    def rank(name: str) -> tuple[bool | str, ...]:
        return name not in _FIRST, *(not name.startswith(start) for start in _NEXT), name

    return {name: regular[name] for name in sorted(regular, key=rank)}


def _names(view: HeadLike) -> tuple[list[str], list[str]]:
    """The labels of the rows and of the columns, at most 14 times as wide as the font is high."""
    return labels.names(row_tokens(view), 14), labels.names(view.key_tokens, 14)


def _settings(form: Form, fonts: list[str], outlined: list[str]) -> Any:
    """matplotlib's settings for a sheet."""
    pad = 0.4 * form.letters
    return {
        **dict.fromkeys(("xtick.bottom", "xtick.labelbottom", "ytick.left", "legend.frameon"), False),
        **dict.fromkeys(("font.size", "axes.titlesize", "legend.fontsize"), form.letters),
        **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 0),
        **dict.fromkeys(("xtick.major.pad", "ytick.major.pad", "axes.labelpad", "axes.titlepad"), pad),
        **dict.fromkeys(("legend.handletextpad", "legend.labelspacing", "legend.borderaxespad"), 0.3),
        **dict.fromkeys(("hatch.linewidth", "patch.linewidth"), 0.4),
        "xtick.labeltop": True,
        "axes.labelcolor": _GREY,
        "axes.titlelocation": "left",
        "font.family": [*fonts, "sans-serif"],  # an SVG names them all
        "text.hinting": "no_hinting",  # so that a text is as long in the file as when it is laid out
        "text.parse_math": False,  # a dollar sign does not begin a formula
        "pdf.fonttype": 3 if outlined else 42,
        "svg.fonttype": "none",  # text stays text
    }


def _grid(views: Sequence[HeadLike], form: Form) -> Figure:
    """The maps side by side; each has room for as many cells as the largest beside it and under it."""
    count, kinds = min(form.columns, len(views)), {view.kind for view in views}
    wide = [max(len(view.key_tokens) for view in views[i::count]) for i in range(count)]
    tall = [max(len(view.query_tokens) for view in views[i : i + count]) for i in range(0, len(views), count)]
    figure = Figure((form.width / INCH, _PAGE / 72), dpi=72)  # a dot is a pt
    grid = figure.add_gridspec(len(tall), count, width_ratios=wide, height_ratios=tall)
    for i, view in enumerate(views):
        limits = {"xlim": (0, wide[i % count]), "ylim": (tall[i // count], 0)}
        axes = figure.add_subplot(grid[i], aspect="equal", frame_on=False, **limits)
        if len(views) > 1:  # the paper's own caption names a single one
            kind = f"{view.kind} " if len(kinds) > 1 else ""
            axes.set_title(f"({chr(ord('a') + i)}) {kind}{labels.head_name(view.layer, view.head)}")
        _draw(axes, view, form.scale)
    return figure


def _draw(axes: Axes, view: HeadLike, scale: str) -> None:
    """A map with its labels; masked cells are hatched."""
    (rows, keys), (row_names, key_names) = view.weights.shape, _names(view)
    shares = np.ma.masked_array(style.strength(view.weights, scale), ~view.mask)
    # without an outline in the colour of the cell, readers of PDF show white lines between cells
    cells = axes.pcolor(shares, cmap=ramp(view.kind), vmin=0, vmax=1, edgecolors="face", linewidth=0.1)
    cells.set_gid(f"cells-{view.kind}-{view.layer}-{view.head}")
    line: dict[str, Any] = {"fill": False, "edgecolor": _GREY}
    axes.add_patch(Rectangle((0, 0), keys, rows, clip_on=False, **line))
    for top, bottom, left, right in masked_blocks(view.mask):
        axes.add_patch(Rectangle((left, top), right - left, bottom - top, hatch=_HATCH, linewidth=0, **line))
    upwards: dict[str, Any] = {"rotation": 90, "rotation_mode": "anchor", "ha": "left", "va": "center"}
    axes.set_xticks(np.arange(keys) + 0.5, key_names, **upwards)
    axes.set_yticks(np.arange(rows) + 0.5, row_names, va="center")
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("keys", x=keys / 2 / axes.get_xlim()[1])
    title = "queries" if view.kind == "encoder" else f"queries (token {named(view)})"
    axes.set_ylabel(title, y=1 - rows / 2 / axes.get_ylim()[0])


def ramp(kind: str) -> LinearSegmentedColormap:
    """The colours of weights from 0 to 1: those of the app's maps (`style.scale`) on a white page."""
    hue = np.array(to_rgb(style.HUES[kind]))
    return LinearSegmentedColormap.from_list(kind, [1 - style.FAINTEST * (1 - hue), hue])


def _lay_out(figure: Figure, form: Form) -> int:
    """Gives maps their places and labels their size; returns every how many tokens one has a label."""
    warnings.filterwarnings("error", "constrained_layout not applied")
    air = 0.5 * form.letters / 72
    ConstrainedLayoutEngine(w_pad=air, h_pad=air, compress=True).execute(figure)
    cell = figure.axes[0].bbox.width / figure.axes[0].get_xlim()[1]
    size, step = min(form.letters, cell / 0.95), 1
    if size < min(form.letters, 5):  # too small to read: better some labels than all
        size, step = form.letters, math.ceil(0.95 * form.letters / cell)
    edges: dict[int, float] = {}  # the left edge of each column of maps with their labels
    columns = [axes.get_subplotspec().colspan.start for axes in figure.axes]  # type: ignore[union-attr]
    for axes, column in zip(figure.axes, columns, strict=True):
        for texts in (axes.get_xticklabels(), axes.get_yticklabels()):
            for i, text in enumerate(texts):
                text.set(fontsize=size, visible=i % step == 0)
        side = axes.yaxis.label.get_window_extent()
        if side.height > axes.bbox.height:
            axes.yaxis.label.set_text("queries")
        edges[column] = min(side.x0, edges.get(column, side.x0))
    for axes, column in zip(figure.axes, columns, strict=True):
        x = (edges[column] - axes.bbox.x0) / axes.bbox.width
        title = axes.set_title(axes.get_title("left"), x=x)
        if title.get_window_extent().x1 > edges.get(column + 1, figure.bbox.x1):
            raise UserWarning("A title is wider than its map: make the figure wider or its letters smaller.")
    figure.align_titles()
    return step


def _add_legend(figure: Figure, views: Sequence[HeadLike], form: Form) -> None:
    """Writes under the maps what the colours of each kind mean, and the hatching."""
    kinds = dict.fromkeys(view.kind for view in views)
    signs: dict[str, Any] = {
        text: tuple(Patch(facecolor=ramp(kind)(share), edgecolor=_GREY) for kind in kinds)
        for text, share in style.stops(form.scale)
    }
    if not all(view.mask.all() for view in views):
        signs["masked"] = Patch(facecolor="white", edgecolor=_GREY, hatch=_HATCH)
    look: dict[str, Any] = {"title": quantity(views[0]).share, "loc": "upper left", "alignment": "left"}
    look |= {"bbox_to_anchor": (0, figure.get_tightbbox().y0 / figure.get_figheight()), "columnspacing": 1}
    look |= {"handler_map": {tuple: HandlerTuple(ndivide=None, pad=0)}, "handlelength": len(kinds)}
    for columns in range(len(signs), 0, -1):  # as few lines as have room
        legend = figure.legend(list(signs.values()), list(signs), ncols=columns, **look)
        if legend.get_window_extent().x1 <= figure.bbox.x1:
            break
        legend.remove()
