"""Heads as one figure for a paper: maps without cursor and fading, as vectors, in real sizes."""

import io
import math
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontEntry, FontPath, fontManager, get_font
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox

from explorer.figures.base import labels, style
from explorer.figures.base.captions import named, quantity
from explorer.figures.maps.export import plain
from explorer.figures.maps.heatmap import check, masked_blocks, row_tokens
from transformer.view import HeadMap

INCH = 2.54
_PAGE = 690 / 72
_SMALLEST = 5
_GREY = "#606060"
"""The maps' greatest height in inches, a journal's page; the smallest readable letters in pt."""
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
    lines = [plain(each) for each in about]
    data = io.BytesIO()
    metadata = {"Title": "".join(lines[:1])}
    metadata["Subject" if form.file == "pdf" else "Description"] = "\n".join(lines)
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
        figure.savefig(data, format=form.file, dpi=300, metadata=metadata, bbox_inches=page)
    notes = (
        (step > 1, f"Only one label in {step} has room: choose a larger width, or a smaller font."),
        (
            missing,
            f"No font here has {' '.join(missing[:12])}: install the Noto font of the script.",
        ),
        (
            outlined,
            f"A PDF holds {' and '.join(outlined)} as Type 3, which some publishers refuse.",
        ),
    )
    return data.getvalue(), page.height * INCH, [note for holds, note in notes if holds]


@lru_cache(maxsize=64)
def families(text: str) -> tuple[list[str], list[str]]:
    """The fonts that together draw a text, best first, and the letters that none of them has."""
    variants = set(
        map(chr, range(0xFE00, 0xFE10))
    )  # choose between two drawings of the letter before
    used = []
    missing = {letter for letter in set(text) - variants if not letter.isspace()}
    for name, entry in _entries().items():
        font = get_font(FontPath(entry.fname, entry.index)) if missing else None
        drawn = {letter for letter in missing if font and font.get_char_index(ord(letter))}
        missing -= drawn
        if drawn or name in _BEST[:2]:
            used.append(name)
    return used, sorted(missing)


@lru_cache(maxsize=1)
def _entries() -> dict[str, FontEntry]:
    """The upright, regular font of every installed family, best first."""
    upright = [each for each in fontManager.ttflist if each.style == "normal"]
    regular = {
        each.name: each for each in upright if each.weight in (400, "normal", "regular", "book")
    }
    regular.pop("Last Resort High-Efficiency", None)  # draws a frame in place of every letter
    ranks = {
        name: [name not in _BEST[:2], *(not name.startswith(each) for each in _BEST)]
        for name in regular
    }
    return {name: regular[name] for name in sorted(regular, key=lambda name: (ranks[name], name))}


def _names(view: HeadMap) -> tuple[list[str], list[str]]:
    """The labels of the rows and of the columns, at most 14 times as wide as the font is high."""
    return labels.names(row_tokens(view), 14), labels.names(view.key_tokens, 14)


def _settings(form: Form, fonts: list[str], outlined: list[str]) -> Any:
    """matplotlib's settings for a sheet."""
    sizes = ("font.size", "axes.titlesize")
    pads = ("axes.labelpad", "axes.titlepad")
    ticks = [f"{axis}tick.major." for axis in "xy"]
    return {
        **dict.fromkeys(sizes, form.letters),
        **dict.fromkeys((*pads, *(f"{tick}pad" for tick in ticks)), 0.4 * form.letters),
        **dict.fromkeys((f"{tick}size" for tick in ticks), 0),
        **dict.fromkeys(("hatch.linewidth", "patch.linewidth", "axes.linewidth"), 0.4),
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
    """The maps side by side over what their colours mean, and every how many tokens one has a
    label."""
    count = min(form.columns, len(views))
    kinds = list(dict.fromkeys(view.kind for view in views))
    wide = [max(len(view.key_tokens) for view in views[i::count]) for i in range(count)]
    tall = [
        max(len(view.query_tokens) for view in views[i : i + count])
        for i in range(0, len(views), count)
    ]
    figure = Figure((form.width / INCH, _PAGE), dpi=72, layout="compressed")  # a dot is a pt
    grid = figure.add_gridspec(len(tall), count, width_ratios=wide, height_ratios=tall)
    titles = []
    for i, view in enumerate(views):
        limits = {"xlim": (0, wide[i % count]), "ylim": (tall[i // count], 0)}
        axes = figure.add_subplot(grid[i], aspect="equal", frame_on=False, **limits)
        kind = f"{view.kind}\n" if len(kinds) > 1 else ""
        if len(views) > 1:  # the paper's own caption names a single one
            titles.append(
                axes.set_title(
                    f"({chr(ord('a') + i)}) {kind}{labels.head_name(view.layer, view.head)}"
                )
            )
        _draw_map(axes, view, form.scale)
    maps = list(figure.axes)
    (texts, shares) = zip(*style.stops(form.scale), strict=True)
    place: dict[str, Any] = {
        "location": "bottom",
        "aspect": 40,
        "fraction": 0.03,
        "pad": 0.01,
        "ticks": [],
    }
    bars = [figure.colorbar(ScalarMappable(cmap=_ramp(kind)), ax=maps, **place) for kind in kinds]
    for bar in bars:
        assert bar.solids is not None
        bar.solids.set(edgecolor="face", rasterized=False)  # as the cells
    bars[0].set_ticks(shares, labels=texts)  # it stands lowest
    hatched = "" if all(view.mask.all() for view in views) else "\nhatched: masked"
    bars[0].set_label(f"{quantity(views[0]).share}{hatched}")
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    sides = [text.get_window_extent() for text in (*titles, bars[0].ax.xaxis.label)]
    cut = any(side.x0 < 0 or side.x1 > figure.bbox.x1 for side in sides)
    if cut or any(a.overlaps(b) for a, b in combinations(sides, 2)):
        raise UserWarning("The titles have no room: make the figure wider or its letters smaller.")
    cell = maps[0].bbox.width / maps[0].get_xlim()[1]
    size = min(form.letters, cell / 0.95)
    step = 1
    if size < min(form.letters, _SMALLEST):  # too small to read: better some labels than all
        size = form.letters
        step = math.ceil(0.95 * form.letters / cell)
    for axes in maps:
        for i, label in (*enumerate(axes.get_xticklabels()), *enumerate(axes.get_yticklabels())):
            label.set(fontsize=size, visible=i % step == 0)
        if axes.yaxis.label.get_window_extent().height > axes.bbox.height:
            axes.yaxis.label.set_text("queries")
    return figure, step


def _draw_map(axes: Axes, view: HeadMap, scale: str) -> None:
    """A map with its labels; masked cells are hatched."""
    (rows, keys) = view.weights.shape
    (row_names, key_names) = _names(view)
    shares = np.ma.masked_array(style.strength(view.weights, scale), ~view.mask)
    # without an outline in the colour of the cell, readers of PDF show white lines between cells
    cells = axes.pcolor(
        shares, cmap=_ramp(view.kind), vmin=0, vmax=1, edgecolors="face", linewidth=0.1
    )
    cells.set_gid(f"cells-{view.kind}-{view.layer}-{view.head}")
    line: dict[str, Any] = {"fill": False, "edgecolor": _GREY}
    axes.add_patch(Rectangle((0, 0), keys, rows, clip_on=False, **line))
    for top, bottom, left, right in masked_blocks(view.mask):
        axes.add_patch(
            Rectangle((left, top), right - left, bottom - top, hatch="/////", linewidth=0, **line)
        )
    upwards: dict[str, Any] = {
        "rotation": 90,
        "rotation_mode": "anchor",
        "ha": "left",
        "va": "center",
    }
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xticks(np.arange(keys) + 0.5, key_names, **upwards)
    axes.set_yticks(np.arange(rows) + 0.5, row_names)
    axes.set_xlabel("keys", x=keys / 2 / axes.get_xlim()[1])
    title = "queries" if view.kind == "encoder" else f"queries (token {named(view)})"
    axes.set_ylabel(title, y=1 - rows / 2 / axes.get_ylim()[0])


def _ramp(kind: str) -> LinearSegmentedColormap:
    """The colours of weights from 0 to 1: those of the app's maps (`style.scale`) on a white
    page."""
    hue = np.array(to_rgb(style.HUES[kind]))
    return LinearSegmentedColormap.from_list(kind, [1 - style.FAINTEST * (1 - hue), hue])
