"""Figures for a paper as a reader sees them: sizes, colours, texts, and what the file says of itself."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from head_views import View, decoder_view, view
from matplotlib.colors import to_hex
from PIL import Image

from explorer.figures.base import style
from explorer.figures.paper import sheet as drawing
from explorer.figures.paper.sheet import INCH, Form, ramp, sheet

ROOT = Path(__file__).resolve().parents[4]
FILES = ("pdf", "svg", "png")
TEXT = re.compile(r'<text style="font-size: ([\d.]+)px[^>]*? x="([\d.-]+)" y="([\d.-]+)"[^>]*>([^<]*)</text>')
JAPANESE, ARABIC = ("▁猫", "は", "とても", "疲れた", "</s>"), ("▁القطة", "▁الصغيرة", "▁متعبة", "</s>")


def cross(seed: int = 0, **more: object) -> View:
    return view("cross", ("<s>", "▁a", "▁b"), ("▁x", "▁y", "▁z", "</s>"), seed, **more)


def svg(heads: list[View], **form: object) -> str:
    return sheet(heads, Form("svg", **form))[0].decode()  # type: ignore[arg-type]


def texts(drawn: str) -> dict[str, tuple[float, float, float]]:
    """Size and place of every text of an SVG in pt."""
    return {text: (float(size), float(x), float(y)) for size, x, y, text in TEXT.findall(drawn)}


def picture(heads: list[View], **form: object) -> Image.Image:
    return Image.open(io.BytesIO(sheet(heads, Form("png", **form))[0]))  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", style.SCALES)
@pytest.mark.parametrize(
    "heads",
    [[decoder_view(6)], [view("encoder", ("▁a", "▁b"), ("▁a", "▁b"))], [cross(i, head=i) for i in range(5)]],
)
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


@pytest.mark.parametrize("width", [6.0, 8.5, 17.0])
def test_the_file_is_as_wide_as_asked(width: float) -> None:
    data, height, _ = sheet([cross()], Form("pdf", width))
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+)", data)
    assert [float(side) / 72 * INCH for side in box.groups()] == pytest.approx([width, height], abs=0.01)
    with picture([cross()], width=width) as image:
        assert image.width == pytest.approx(width / INCH * 300, abs=1)
        assert image.info["dpi"][0] == pytest.approx(300, abs=0.1)


@pytest.mark.parametrize("letters", [6.0, 8.0, 12.0])
def test_texts_have_the_size_that_was_asked_for(letters: float) -> None:
    assert {size for size, _, _ in texts(svg([cross()], width=17, letters=letters)).values()} == {letters}


@pytest.mark.parametrize(("count", "width"), [(5, 8.5), (12, 8.0), (30, 8.5), (40, 17.0), (60, 17.0)])
def test_all_labels_are_there_apart_from_one_another_and_large_enough_to_read(
    count: int, width: float
) -> None:
    drawn = TEXT.findall(svg([decoder_view(count)], width=width))
    names = {"<s>".replace("<", "&lt;").replace(">", "&gt;"), *(f"w{i}" for i in range(count - 1))}
    found = [(float(size), float(x), float(y)) for size, x, y, text in drawn if text in names]
    assert len(found) == 2 * count
    size, places = found[0][0], np.array(found)[:, 1:]
    assert 5 <= size <= 8
    assert np.diff(np.sort(places[:count, 0])).min() > 0.9 * size  # columns
    assert np.diff(np.sort(places[count:, 1])).min() > 0.9 * size  # rows


def test_labels_without_room_are_left_out_and_told() -> None:
    drawn, _, notes = sheet([decoder_view(64)], Form("svg", width=5))
    assert "label" in notes[0]
    assert 4 < drawn.count(b"<text") < 64


@pytest.mark.parametrize("fonts", [None, ["DejaVu Sans"], ["DejaVu Serif"]])
@pytest.mark.parametrize(
    "heads",
    [
        [view("cross", JAPANESE, ARABIC)],
        [decoder_view(40)],
        [view("encoder", ("▁" + "W" * 200, "▁a"), ("▁" + "W" * 200, "▁a"))],
        [view(kind, ("▁a", "▁b"), ("▁a", "▁b")) for kind in style.HUES],
        [cross(head=i) for i in range(12)],
    ],
)
def test_nothing_is_cut_off_at_the_edges(
    heads: list[View], fonts: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fonts:  # those that matplotlib brings, however many are installed
        monkeypatch.setattr(drawing, "families", lambda text: (fonts, []))
    pixels = np.asarray(picture(heads, width=8.5 if len(heads) < 4 else 17).convert("L"))
    for edge in (pixels[:, 0], pixels[:, -1], pixels[0], pixels[-1]):
        assert edge.min() == 255
    for _, x, y in texts(svg(heads)).values():
        assert 0 <= x <= 8.5 / INCH * 72
        assert y >= 0


@pytest.mark.parametrize("tokens", [JAPANESE, ARABIC, ("▁müde", "▁<b>", "▁$x^2$")])
def test_tokens_of_every_script_are_text(tokens: tuple[str, ...]) -> None:
    written = [text for *_, text in TEXT.findall(svg([view("encoder", tokens, tokens)]))]
    for token in tokens:
        assert written.count(token.lstrip("▁").replace("<", "&lt;").replace(">", "&gt;")) == 2


def test_several_heads_are_lettered_and_their_cells_have_one_size() -> None:
    heads = [view("encoder", ("▁a",) * 3, ("▁b",) * 3), decoder_view(9), cross(), cross(head=7)]
    drawn = svg(heads, width=17, columns=2)
    placed = texts(drawn)
    titles = ["(a) encoder L3 H5", "(b) decoder L3 H5", "(c) cross L3 H5", "(d) cross L3 H8"]
    (_, x0, y0), (_, x1, y1), (_, x2, y2), _ = (placed[title] for title in titles)
    assert x0 < x1
    assert (x2, y1) == pytest.approx((x0, y0), abs=0.1)
    assert y0 < y2
    paths = re.findall(
        r'<path d="M ([\d.]+) ([\d.]+) \nL ([\d.]+) ([\d.]+) [^"]*" clip[^>]*stroke-width: 0.1', drawn
    )
    sides = [max(abs(float(c) - float(a)), abs(float(d) - float(b))) for a, b, c, d in paths]
    assert len(sides) == 9 + 45 + 12 + 12
    assert max(sides) == pytest.approx(min(sides), abs=1e-3)


@pytest.mark.parametrize("file", FILES)
def test_letters_that_no_font_has_are_told_in_one_sentence(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "families", lambda text: (["DejaVu Sans"], ["猫"]))
    (note,) = sheet([view("encoder", JAPANESE, JAPANESE)], Form(file))[2]
    assert "猫" in note
    assert note.count(".") == 1


def test_a_pdf_holds_its_fonts_as_truetype_or_says_that_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _, notes = sheet([cross()], Form("pdf"))
    assert b"/FontFile2" in data
    assert b"/Type3" not in data
    assert notes == []
    monkeypatch.setattr(drawing, "without_truetype", lambda names: ["Some CFF"])
    data, _, notes = sheet([cross()], Form("pdf"))
    assert b"/Type3" in data
    assert "Some CFF" in notes[0]


@pytest.mark.parametrize("file", FILES)
def test_the_file_says_what_it_shows_and_where_it_comes_from(file: str) -> None:
    data, *_ = sheet([cross()], Form(file), ("Cross-attention · verified", "?text=a&b=<c>\u202e"))
    if file == "png":
        with Image.open(io.BytesIO(data)) as image:
            assert image.info["Description"] == "Cross-attention · verified\n?text=a&b=<c>U+202E"
    else:
        assert {"pdf": "?text=a&b=<c>".encode("utf-16-be"), "svg": b"?text=a&amp;b=&lt;c&gt;"}[file] in data


@pytest.mark.parametrize(
    ("heads", "form", "words"),
    [
        ([cross(head=i) for i in range(6)], Form(width=3, letters=24, columns=6), "axes sizes collapsed"),
        ([view(kind, ("▁a", "▁b"), ("▁a", "▁b")) for kind in style.HUES], Form(width=6), "A title is wider"),
    ],
)
def test_no_room_is_an_error(
    heads: list[View], form: Form, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "families", lambda text: (["DejaVu Sans"], []))
    with pytest.raises(UserWarning, match=words):
        sheet(heads, form)


def test_a_legend_takes_the_lines_that_its_texts_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "families", lambda text: (["DejaVu Sans"], []))
    placed = texts(svg([decoder_view(6)], width=8.5, letters=16))
    assert len({placed[text][2] for text in ("0", "0.25", "0.5", "0.75", "1", "masked")}) == 3


def test_matplotlib_is_not_imported_before_a_figure_is_asked_for() -> None:
    code = "import sys, explorer.app.maps.run_export; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
