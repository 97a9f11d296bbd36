"""Figures for a paper as a reader sees them: sizes, colours, texts, and what the file says of itself."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from head_views import View, decoder_view, view
from matplotlib.colors import to_hex
from matplotlib.font_manager import FontProperties, findfont, get_font
from PIL import Image

from explorer.figures.base import style
from explorer.figures.maps import paper
from explorer.figures.maps.paper import INCH, Form, families, ramp, sheet

ROOT = Path(__file__).resolve().parents[4]
TEXT = re.compile(r'<text style="font-size: ([\d.]+)px[^>]*? x="([\d.-]+)" y="([\d.-]+)"[^>]*>([^<]*)</text>')
JAPANESE, ARABIC = ("▁猫", "は", "とても", "疲れた", "</s>"), ("▁القطة", "▁الصغيرة", "▁متعبة", "</s>")
NOWHERE = "\U0010ffff"
"""Not a character and never one."""


def cross(seed: int = 0, **more: object) -> View:
    return view("cross", ("<s>", "▁a", "▁b"), ("▁x", "▁y", "▁z", "</s>"), seed, **more)


LONG, MANY = ("▁" + "W" * 200, "▁a"), [cross(head=i) for i in range(12)]
KINDS = [view(kind, ("▁a", "▁b"), ("▁a", "▁b")) for kind in style.HUES]


def svg(heads: list[View], **form: object) -> str:
    return sheet(heads, Form("svg", **form))[0].decode()  # type: ignore[arg-type]


def texts(drawn: str) -> dict[str, tuple[float, float, float]]:
    """Size and place of every text of an SVG in pt."""
    return {text: (float(size), float(x), float(y)) for size, x, y, text in TEXT.findall(drawn)}


@pytest.mark.parametrize("text", ["The cat, müde₁", "猫が", "القطة", "बिल्ली", "😀", f"a{NOWHERE}"])
def test_each_letter_has_a_font_or_is_named_as_missing(text: str) -> None:
    chosen, missing = families(text)
    fonts = [get_font(findfont(FontProperties(family=name))) for name in chosen]
    for letter in text:
        assert any(font.get_char_index(ord(letter)) for font in fonts) != (letter in missing)
    assert (NOWHERE in missing) == (NOWHERE in text)


@pytest.mark.parametrize("scale", style.SCALES)
@pytest.mark.parametrize("heads", [[decoder_view(6)], [cross(i, head=i) for i in range(5)]])
def test_every_cell_that_is_not_masked_has_the_colour_of_its_weight(heads: list[View], scale: str) -> None:
    drawn = svg(heads, width=17, scale=scale)
    for head in heads:
        group = drawn.split(f'<g id="cells-{head.kind}-{head.layer}-{head.head}">')[1].split("</g>")[0]
        shares = style.strength(head.weights[head.mask], scale)
        assert re.findall(r"fill: (#\w{6})", group) == [to_hex(each) for each in ramp(head.kind)(shares)]
    assert "<image" not in drawn
    assert ("masked" in texts(drawn)) == ("pattern id" in drawn) == any(not head.mask.all() for head in heads)


@pytest.mark.parametrize("kind", style.HUES)
def test_colours_are_those_of_the_app_on_white(kind: str) -> None:
    hue = np.array([int(style.HUES[kind][i : i + 2], 16) / 255 for i in (1, 3, 5)])
    opacity = (style.FAINTEST + (1 - style.FAINTEST) * np.linspace(0, 1, 9))[:, None]
    np.testing.assert_allclose(ramp(kind)(np.linspace(0, 1, 9))[:, :3], 1 - opacity * (1 - hue), atol=1 / 255)


@pytest.mark.parametrize(("width", "letters"), [(6.0, 6.0), (17.0, 12.0)])
def test_the_file_and_its_texts_are_as_large_as_asked(width: float, letters: float) -> None:
    data, height, _ = sheet([cross()], Form("pdf", width, letters))
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+)", data)
    assert [float(side) / 72 * INCH for side in box.groups()] == pytest.approx([width, height], abs=0.01)
    assert {size for size, _, _ in texts(svg([cross()], width=width, letters=letters)).values()} == {letters}


@pytest.mark.parametrize(("count", "width"), [(5, 8.5), (30, 8.5), (60, 17.0)])
def test_all_labels_are_there_apart_from_one_another_and_large_enough_to_read(
    count: int, width: float
) -> None:
    names = {"&lt;s&gt;", *(f"w{i}" for i in range(count - 1))}
    drawn = TEXT.findall(svg([decoder_view(count)], width=width))
    found = np.array([(float(size), float(x), float(y)) for size, x, y, text in drawn if text in names])
    assert len(found) == 2 * count
    assert 5 <= (size := found[0, 0]) <= 8
    assert np.diff(np.sort(found[:count, 1])).min() > 0.9 * size  # columns
    assert np.diff(np.sort(found[count:, 2])).min() > 0.9 * size  # rows


@pytest.mark.parametrize("fonts", [None, ["DejaVu Sans"]])
@pytest.mark.parametrize(
    "heads",
    [[view("cross", JAPANESE, ARABIC)], [view("encoder", LONG, LONG)], [decoder_view(40)], KINDS, MANY],
)
def test_nothing_is_cut_off_at_the_edges(
    heads: list[View], fonts: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fonts:  # those that matplotlib brings, however many are installed
        monkeypatch.setattr(paper, "families", lambda text: (fonts, []))
    width = 8.5 if len(heads) < 4 else 17
    with Image.open(io.BytesIO(sheet(heads, Form("png", width))[0])) as image:
        assert image.width == pytest.approx(width / INCH * 300, abs=1)
        pixels = np.asarray(image.convert("L"))
    assert min(edge.min() for edge in (pixels[:, 0], pixels[:, -1], pixels[0], pixels[-1])) == 255


@pytest.mark.parametrize("tokens", [JAPANESE, ARABIC, ("▁müde", "▁<b>", "▁$x^2$")])
def test_tokens_of_every_script_are_text(tokens: tuple[str, ...]) -> None:
    written = [text for *_, text in TEXT.findall(svg([view("encoder", tokens, tokens)]))]
    for token in tokens:
        assert written.count(token.lstrip("▁").replace("<", "&lt;").replace(">", "&gt;")) == 2


def test_several_heads_are_lettered_and_their_cells_have_one_size() -> None:
    heads = [view("encoder", ("▁a",) * 3, ("▁b",) * 3), decoder_view(9), cross(), cross(head=7)]
    drawn = svg(heads, width=17, columns=2)
    titles = ["(a) encoder L3 H5", "(b) decoder L3 H5", "(c) cross L3 H5", "(d) cross L3 H8"]
    (_, x0, y0), (_, x1, y1), (_, x2, y2), _ = (texts(drawn)[title] for title in titles)
    assert x0 < x1
    assert (x2, y1) == pytest.approx((x0, y0), abs=0.1)
    assert y0 < y2
    cell = r'<path d="M ([\d.]+) ([\d.]+) \nL ([\d.]+) ([\d.]+) [^"]*" clip[^>]*stroke-width: 0.1'
    corners = np.array(re.findall(cell, drawn), float)
    sides = np.abs(corners[:, 2:] - corners[:, :2]).max(1)
    assert len(sides) == 9 + 45 + 12 + 12
    assert sides.max() == pytest.approx(sides.min(), abs=1e-3)


@pytest.mark.parametrize(
    ("heads", "form", "missing", "file", "words", "type3"),
    [
        ([cross()], Form(), [], "a.ttf", [], False),
        ([decoder_view(64)], Form(width=5), [], "a.ttf", ["Only one label in"], False),
        ([cross()], Form(), ["猫"], "a.ttf", ["No font here has 猫"], False),
        ([cross()], Form(), [], "a.otf", ["A PDF holds DejaVu Sans as Type 3"], True),
    ],
)
def test_what_a_reader_should_know_is_told(
    heads: list[View],
    form: Form,
    missing: list[str],
    file: str,
    words: list[str],
    type3: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paper, "families", lambda text: (["DejaVu Sans"], missing))
    monkeypatch.setattr(paper, "_entries", lambda: {"DejaVu Sans": SimpleNamespace(fname=file)})
    data, _, notes = sheet(heads, form)
    assert (b"/Type3" in data, b"/FontFile2" in data) == (type3, not type3)
    assert [note[: len(start)] for note, start in zip(notes, words, strict=True)] == words


def test_the_file_says_what_it_shows_and_where_it_comes_from() -> None:
    about = "Cross-attention · verified", "?text=a&b=<c>\u202e"
    files = {file: sheet([cross()], Form(file), about)[0] for file in ("pdf", "svg", "png")}
    with Image.open(io.BytesIO(files["png"])) as image:
        assert image.info["Description"] == "Cross-attention · verified\n?text=a&b=<c>U+202E"
    assert b"?text=a&amp;b=&lt;c&gt;" in files["svg"]
    assert "?text=a&b=<c>".encode("utf-16-be") in files["pdf"]


@pytest.mark.parametrize(
    ("heads", "form", "words"),
    [
        ([cross(head=i) for i in range(6)], Form(width=3, letters=24, columns=6), "axes sizes collapsed"),
        (KINDS, Form(width=6), "A title is wider"),
    ],
)
def test_no_room_is_an_error(
    heads: list[View], form: Form, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper, "families", lambda text: (["DejaVu Sans"], []))
    with pytest.raises(UserWarning, match=words):
        sheet(heads, form)


def test_a_legend_takes_the_lines_that_its_texts_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "families", lambda text: (["DejaVu Sans"], []))
    drawn = texts(svg([decoder_view(6)], width=8.5, letters=16))
    assert len({drawn[text][2] for text in ("0", "0.25", "0.5", "0.75", "1", "masked")}) == 3


def test_matplotlib_is_not_imported_before_a_figure_is_asked_for() -> None:
    code = "import sys, explorer.app.maps.run_export; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
