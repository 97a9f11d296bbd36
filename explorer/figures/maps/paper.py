"""Heads as one figure for a paper: maps without cursor and fading, as vectors, in real sizes."""

import io
import math
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontEntry, FontPath, fontManager, get_font
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from matplotlib.typing import RcKeyType

from explorer.figures.base import labels, style
from explorer.figures.base.captions import named, quantity
from explorer.figures.maps.export import plain
from explorer.figures.maps.heatmap import check, masked_blocks, row_tokens
from transformer.view import HeadMap

Settings = dict[RcKeyType, object]
"""Settings of matplotlib by their names."""
INCH = 2.54
_PAGE = 690 / 72
"""The maps' greatest height in inches: a journal's page."""
_SMALLEST = 5
"""The smallest readable letters in pt."""
_GREY = "#606060"
_BEST = ("Noto Sans", "DejaVu Sans", "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto")
"""Beginnings of the families that are preferred, best first; the second comes with matplotlib."""
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
    views: Sequence[HeadMap], form: Form, about: Sequence[str] = ()
) -> tuple[bytes, float, list[str]]:
    """Heads on one sheet with cells of one size: the file, its height in cm, sentences for its
    reader.

    ValueError as for `heatmap`; UserWarning if the labels leave no room for the maps.
    """
    for view in views:
        check(view)
    fonts, missing = families(
        "".join(name for view in views for side in _names(view) for name in side)
    )
    outlined = [name for name in fonts if not _entries()[name].fname.lower().endswith(".ttf")]
    data = io.BytesIO()
    with (
        _DRAWING,
        matplotlib.rc_context(_settings(form, fonts, outlined)),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # the notes name the letters without a font
        warnings.filterwarnings("error", "constrained_layout not applied")
        figure, step = _draw(views, form)
        drawn = figure.get_tightbbox()
        page = Bbox([[0, drawn.y0 - 0.03], [figure.get_figwidth(), drawn.y1 + 0.03]])
        metadata = _metadata(form, about)
        figure.savefig(data, format=form.file, dpi=300, metadata=metadata, bbox_inches=page)
    return data.getvalue(), page.height * INCH, _notes(step, missing, outlined)


def _metadata(form: Form, about: Sequence[str]) -> dict[str, str]:
    """What the file says of itself, by the names that its format has."""
    lines = [plain(line) for line in about]
    text = "Subject" if form.file == "pdf" else "Description"
    return {"Title": "".join(lines[:1]), text: "\n".join(lines)}


def _notes(step: int, missing: Sequence[str], outlined: Sequence[str]) -> list[str]:
    """What a reader of the file should know of its labels, letters and fonts."""
    notes = []
    if step > 1:
        notes.append(
            f"Only one label in {step} has room: choose a larger width, or a smaller font."
        )
    if missing:
        letters = " ".join(missing[:12])
        notes.append(f"No font here has {letters}: install the Noto font of the script.")
    if outlined:
        fonts = " and ".join(outlined)
        notes.append(f"A PDF holds {fonts} as Type 3, which some publishers refuse.")
    return notes


@lru_cache(maxsize=64)
def families(text: str) -> tuple[list[str], list[str]]:
    """The fonts that together draw a text, best first, and the letters that none of them has."""
    # those choose between two drawings of the letter before
    variants = {chr(code) for code in range(0xFE00, 0xFE10)}
    used = []
    missing = {letter for letter in set(text) - variants if not letter.isspace()}
    for name, entry in _entries().items():
        drawn = _drawn_by(entry, missing)
        missing -= drawn
        if drawn or name in _BEST[:2]:
            used.append(name)
    return used, sorted(missing)


def _drawn_by(entry: FontEntry, letters: set[str]) -> set[str]:
    """Those of the letters that a font has."""
    if not letters:
        return set()
    font = get_font(FontPath(entry.fname, entry.index))
    return {letter for letter in letters if font.get_char_index(ord(letter))}


@lru_cache(maxsize=1)
def _entries() -> dict[str, FontEntry]:
    """The upright, regular font of every installed family, best first."""
    upright = [entry for entry in fontManager.ttflist if entry.style == "normal"]
    regular = {
        entry.name: entry for entry in upright if entry.weight in (400, "normal", "regular", "book")
    }
    regular.pop("Last Resort High-Efficiency", None)  # draws a frame in place of every letter
    ranks = {
        name: [name not in _BEST[:2], *(not name.startswith(beginning) for beginning in _BEST)]
        for name in regular
    }
    return {name: regular[name] for name in sorted(regular, key=lambda name: (ranks[name], name))}


def _names(view: HeadMap) -> tuple[list[str], list[str]]:
    """The labels of the rows and of the columns, at most 14 times as wide as the font is high."""
    return labels.names(row_tokens(view), 14), labels.names(view.key_tokens, 14)


def _settings(form: Form, fonts: list[str], outlined: list[str]) -> Settings:
    """matplotlib's settings for a sheet."""
    air = 0.4 * form.letters
    return {
        "font.size": form.letters,
        "axes.titlesize": form.letters,
        "axes.labelpad": air,
        "axes.titlepad": air,
        "xtick.major.pad": air,
        "ytick.major.pad": air,
        "xtick.major.size": 0,
        "ytick.major.size": 0,
        "hatch.linewidth": 0.4,
        "patch.linewidth": 0.4,
        "axes.linewidth": 0.4,
        "axes.labelcolor": _GREY,
        "axes.titlelocation": "left",
        "font.family": [*fonts, "sans-serif"],  # an SVG names them all
        # so that a text is as long in the file as when it is laid out
        "text.hinting": "no_hinting",
        "text.parse_math": False,  # a dollar sign does not begin a formula
        "pdf.fonttype": 3 if outlined else 42,
        "svg.fonttype": "none",  # text stays text
    }


def _draw(views: Sequence[HeadMap], form: Form) -> tuple[Figure, int]:
    """The maps side by side over what their colours mean; one of how many tokens has a label."""
    figure = Figure((form.width / INCH, _PAGE), dpi=72, layout="compressed")  # a dot is a pt
    titles = _draw_maps(figure, views, form)
    maps = list(figure.axes)
    colours = _draw_colours(figure, maps, views, form)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    _check_room(figure, [*titles, colours.ax.xaxis.label])
    step = _fit_labels(maps, form)
    for axes in maps:
        if axes.yaxis.label.get_window_extent().height > axes.bbox.height:
            axes.yaxis.label.set_text("queries")
    return figure, step


def _draw_maps(figure: Figure, views: Sequence[HeadMap], form: Form) -> list[Text]:
    """Draws the maps in rows, with cells of one size; returns their titles."""
    count = min(form.columns, len(views))
    wide = [max(len(view.key_tokens) for view in views[i::count]) for i in range(count)]
    tall = [
        max(len(view.query_tokens) for view in views[i : i + count])
        for i in range(0, len(views), count)
    ]
    grid = figure.add_gridspec(len(tall), count, width_ratios=wide, height_ratios=tall)
    several_kinds = len({view.kind for view in views}) > 1
    titles = []
    for i, view in enumerate(views):
        limits = {"xlim": (0, wide[i % count]), "ylim": (tall[i // count], 0)}
        axes = figure.add_subplot(grid[i], aspect="equal", frame_on=False, **limits)
        if len(views) > 1:  # the paper's own caption names a single one
            kind = f"{view.kind}\n" if several_kinds else ""
            letter = chr(ord("a") + i)
            title = f"({letter}) {kind}{labels.head_name(view.layer, view.head)}"
            titles.append(axes.set_title(title))
        _draw_map(axes, view, form.scale)
    return titles


def _draw_colours(
    figure: Figure, maps: list[Axes], views: Sequence[HeadMap], form: Form
) -> Colorbar:
    """What the colours of each kind mean; returns the lowest bar, which has the numbers."""
    bars = [
        figure.colorbar(
            ScalarMappable(cmap=_ramp(kind)),
            ax=maps,
            location="bottom",
            aspect=40,
            fraction=0.03,
            pad=0.01,
            ticks=[],
        )
        for kind in dict.fromkeys(view.kind for view in views)
    ]
    for bar in bars:
        assert bar.solids is not None
        bar.solids.set(edgecolor="face", rasterized=False)  # as the cells
    lowest = bars[0]
    texts, shares = zip(*style.stops(form.scale), strict=True)
    lowest.set_ticks(shares, labels=texts)
    share = quantity(views[0]).share
    if all(view.mask.all() for view in views):
        lowest.set_label(share)
    else:
        lowest.set_label(f"{share}\nhatched: masked")
    return lowest


def _check_room(figure: Figure, texts: Sequence[Text]) -> None:
    """UserWarning if some of the texts are cut or lie over one another."""
    boxes = [text.get_window_extent() for text in texts]
    cut = any(box.x0 < 0 or box.x1 > figure.bbox.x1 for box in boxes)
    if cut or any(one.overlaps(other) for one, other in combinations(boxes, 2)):
        raise UserWarning("The titles have no room: make the figure wider or its letters smaller.")


def _fit_labels(maps: Sequence[Axes], form: Form) -> int:
    """Makes the labels of tokens as large as cells allow; every how many tokens one has a label."""
    cell = maps[0].bbox.width / maps[0].get_xlim()[1]
    size = min(form.letters, cell / 0.95)
    step = 1
    if size < min(form.letters, _SMALLEST):  # too small to read: better some labels than all
        size = form.letters
        step = math.ceil(0.95 * form.letters / cell)
    for axes in maps:
        for i, label in (*enumerate(axes.get_xticklabels()), *enumerate(axes.get_yticklabels())):
            label.set(fontsize=size, visible=i % step == 0)
    return step


def _draw_map(axes: Axes, view: HeadMap, scale: str) -> None:
    """A map with its labels; masked cells are hatched."""
    rows, keys = view.weights.shape
    row_names, key_names = _names(view)
    shares = np.ma.masked_array(style.strength(view.weights, scale), ~view.mask)
    # without an outline in the colour of the cell, readers of PDF show white lines between cells
    cells = axes.pcolor(
        shares, cmap=_ramp(view.kind), vmin=0, vmax=1, edgecolors="face", linewidth=0.1
    )
    cells.set_gid(f"cells-{view.kind}-{view.layer}-{view.head}")
    axes.add_patch(Rectangle((0, 0), keys, rows, clip_on=False, fill=False, edgecolor=_GREY))
    for top, bottom, left, right in masked_blocks(view.mask):
        corner = (left, top)
        block = Rectangle(corner, right - left, bottom - top, fill=False, edgecolor=_GREY)
        block.set(hatch="/////", linewidth=0)
        axes.add_patch(block)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xticks(
        np.arange(keys) + 0.5,
        key_names,
        rotation=90,
        rotation_mode="anchor",
        ha="left",
        va="center",
    )
    axes.set_yticks(np.arange(rows) + 0.5, row_names)
    axes.set_xlabel("keys", x=keys / 2 / axes.get_xlim()[1])
    title = "queries" if view.kind == "encoder" else f"queries (token {named(view)})"
    axes.set_ylabel(title, y=1 - rows / 2 / axes.get_ylim()[0])


def _ramp(kind: str) -> LinearSegmentedColormap:
    """The colours of weights from 0 to 1: those of the app's maps on a white page."""
    hue = np.array(to_rgb(style.HUES[kind]))
    return LinearSegmentedColormap.from_list(kind, [1 - style.FAINTEST * (1 - hue), hue])
