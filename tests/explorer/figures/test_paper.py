"""Figures for a paper as a reader sees them: sizes, colours, texts, and what the file says of
itself."""

import io
import re
from types import SimpleNamespace

import numpy as np
import pytest
from head_views import View, decoder_view, view
from matplotlib.font_manager import FontProperties, findfont, get_font
from PIL import Image

from explorer.figures.base import style
from explorer.figures.maps import paper
from explorer.figures.maps.paper import INCH, Form, families, sheet

TEXT = re.compile(
    r'<text style="font-size: ([\d.]+)px[^>]*? x="([\d.-]+)" y="([\d.-]+)"[^>]*>([^<]*)</text>'
)
JAPANESE = ("▁猫", "は", "とても", "疲れた", "</s>")
ARABIC = ("▁القطة", "▁الصغيرة", "▁متعبة", "</s>")
NOWHERE = "\U0010ffff"
"""Not a character and never one."""


def cross(seed: int = 0, **more: object) -> View:
    return view("cross", ("<s>", "▁a", "▁b"), ("▁x", "▁y", "▁z", "</s>"), seed, **more)


LONG = ("▁" + "W" * 200, "▁a")
MANY = [cross(head=i) for i in range(6)]
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


@pytest.mark.parametrize(
    ("heads", "scale"),
    [
        ([decoder_view(6)], "linear"),
        ([decoder_view(4)], "log"),
        ([cross(i, head=i) for i in range(3)], "sqrt"),
    ],
)
def test_cells_have_the_colours_of_their_weights_and_masked_ones_are_hatched(heads, scale):
    drawn = svg(heads, width=17, scale=scale)
    for head in heads:
        group = drawn.split(f'<g id="cells-{head.kind}-{head.layer}-{head.head}">')[1].split(
            "</g>"
        )[0]
        shares = style.strength(head.weights[head.mask], scale)[:, None]
        opacity = style.FAINTEST + (1 - style.FAINTEST) * shares  # as the app draws, here on white
        colours = [
            [int(each[i : i + 2], 16) for i in (1, 3, 5)]
            for each in re.findall(r"fill: (#\w{6})", group)
        ]
        hue = np.array([int(style.HUES[head.kind][i : i + 2], 16) for i in (1, 3, 5)])
        np.testing.assert_allclose(colours, 255 - opacity * (255 - hue), atol=1.5)
    assert "<image" not in drawn
    assert {text for text, _ in style.stops(scale)} <= texts(drawn).keys()
    assert ("hatched: masked" in drawn) == ("pattern id" in drawn) == (not heads[0].mask.all())


def test_file_and_texts_are_as_large_as_asked_and_the_file_says_what_it_shows() -> None:
    about = "Cross-attention · verified", "?text=a&b=<c>\u202e"
    for width, letters in ((6.0, 6.0), (17.0, 12.0)):
        data, height, _ = sheet([cross()], Form("pdf", width, letters), about)
        box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+)", data)
        assert [float(side) / 72 * INCH for side in box.groups()] == pytest.approx(
            [width, height], abs=0.01
        )
        drawn = sheet([cross()], Form("svg", width, letters), about)[0]
        assert {size for size, _, _ in texts(drawn.decode()).values()} == {letters}
        assert b"?text=a&amp;b=&lt;c&gt;" in drawn
        assert "?text=a&b=<c>".encode("utf-16-be") in data


@pytest.mark.parametrize(("count", "width"), [(5, 8.5), (64, 17.0)])
def test_all_labels_are_apart_and_large_enough_to_read(count: int, width: float) -> None:
    names = {"&lt;s&gt;", *(f"w{i}" for i in range(count - 1))}
    drawn = TEXT.findall(svg([decoder_view(count)], width=width))
    found = np.array(
        [(float(size), float(x), float(y)) for size, x, y, text in drawn if text in names]
    )
    assert len(found) == 2 * count
    assert 5 <= (size := found[0, 0]) <= 8
    assert np.diff(np.sort(found[:count, 1])).min() > 0.9 * size  # columns
    assert np.diff(np.sort(found[count:, 2])).min() > 0.9 * size  # rows


@pytest.mark.parametrize(
    "heads",
    [
        [view("cross", JAPANESE, ARABIC)],
        [view("encoder", LONG, LONG)],
        [decoder_view(40)],
        KINDS,
        MANY,
    ],
)
def test_nothing_is_cut_off_at_the_edges(heads: list[View]) -> None:
    width = 8.5 if len(heads) < 3 else 17
    with Image.open(io.BytesIO(sheet(heads, Form("png", width), ["a", "?b\u202e"])[0])) as image:
        assert image.info["Description"] == "a\n?bU+202E"
        assert image.width == pytest.approx(width / INCH * 300, abs=1)
        pixels = np.asarray(image.convert("L"))
    assert min(edge.min() for edge in (pixels[:, 0], pixels[:, -1], pixels[0], pixels[-1])) == 255


def test_tokens_of_every_script_are_text() -> None:
    tokens = (*JAPANESE, *ARABIC[:3], "▁müde", "▁<b>", "▁$x^2$")
    written = [text for *_, text in TEXT.findall(svg([view("encoder", tokens, tokens)]))]
    for token in tokens:
        assert written.count(token.lstrip("▁").replace("<", "&lt;").replace(">", "&gt;")) == 2


def test_several_heads_are_lettered_and_their_cells_have_one_size() -> None:
    drawn = svg(
        [view("encoder", ("▁a",) * 3, ("▁b",) * 3), decoder_view(9), cross(), cross(head=7)],
        width=17,
    )
    titles = re.findall(r">(\([a-d]\) \w+|L\d H\d)</text>", drawn)
    assert titles[::2] == ["(a) encoder", "(b) decoder", "(c) cross", "(d) cross"]
    assert titles[1::2] == ["L3 H5", "L3 H5", "L3 H5", "L3 H8"]
    cell = r'<path d="M ([\d.]+) ([\d.]+) \nL ([\d.]+) ([\d.]+) [^"]*" clip[^>]*stroke-width: 0.1'
    corners = np.array(re.findall(cell, drawn), float)
    sides = np.abs(corners[:, 2:] - corners[:, :2]).max(1)
    assert len(sides) == 9 + 45 + 12 + 12
    assert sides.max() == pytest.approx(sides.min(), abs=1e-3)


@pytest.mark.parametrize(
    ("count", "missing", "file", "words"),
    [
        (5, [], "a.ttf", []),
        (64, [], "a.ttf", ["Only one label in"]),
        (5, ["猫"], "a.ttf", ["No font here has 猫"]),
        (5, [], "a.otf", ["A PDF holds DejaVu Sans as Type 3"]),
    ],
)
def test_fonts_are_embedded_and_what_a_reader_should_know_is_noted(
    count, missing, file, words, monkeypatch
):
    monkeypatch.setattr(paper, "families", lambda text: (["DejaVu Sans"], missing))
    monkeypatch.setattr(paper, "_entries", lambda: {"DejaVu Sans": SimpleNamespace(fname=file)})
    data, _, notes = sheet([decoder_view(count)], Form(width=6))
    assert (b"/Type3" in data, b"/FontFile2" in data) == (file == "a.otf", file == "a.ttf")
    assert [note[: len(start)] for note, start in zip(notes, words, strict=True)] == words


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (Form(width=3, letters=24, columns=6), "axes sizes collapsed"),
        (Form(width=4, columns=3), "The titles have no room"),
    ],
)
def test_no_room_is_an_error(form: Form, words: str) -> None:
    with pytest.raises(UserWarning, match=words):
        sheet(KINDS, form)
