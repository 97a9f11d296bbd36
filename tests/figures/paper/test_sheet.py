"""Figures for a paper: vectors whose colours are the weights, real sizes, metadata, every script."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from head_views import View, decoder_view, view
from PIL import Image

from figures.base import style
from figures.paper import sheet as drawing
from figures.paper.draw import text_width
from figures.paper.form import FILES, INCH, MOST_HEADS, POINTS, Form
from figures.paper.sheet import sheet

ROOT = Path(__file__).resolve().parents[3]
ABOUT = ("Cross-attention · layer 3 · ✓ verified", "Attention explorer · ?text=a&b=<c>")
FILL = re.compile(r"fill: #([0-9a-f]{6})")


def cross(seed: int = 0, **more: object) -> View:
    return view("cross", ("<s>", "▁a", "▁b"), ("▁x", "▁y", "▁z", "</s>"), seed, **more)


def cells(svg: str, head: View) -> np.ndarray:
    """The weights of the visible cells, read back from the colours of a figure."""
    group = svg.split(f'<g id="cells-{head.kind}-{head.layer}-{head.head}">')[1].split("</g>")[0]
    found = np.array([[int(text[i : i + 2], 16) / 255 for i in (0, 2, 4)] for text in FILL.findall(group)])
    hue = np.array([int(style.HUES[head.kind][i : i + 2], 16) / 255 for i in (1, 3, 5)])
    widest = int(np.argmin(hue))
    opacity = (1 - found[:, widest]) / (1 - hue[widest])
    return (opacity - style.FAINTEST) / (1 - style.FAINTEST)


@pytest.mark.parametrize("head", [cross(), decoder_view(6), view("encoder", ("▁a", "▁b"), ("▁a", "▁b"))])
def test_every_drawn_cell_has_the_colour_of_its_weight(head: View) -> None:
    svg = sheet([head], Form("svg")).data.decode()
    np.testing.assert_allclose(cells(svg, head), head.weights[head.mask], atol=1 / 200)
    assert "<image" not in svg


def test_several_heads_stand_on_one_sheet_each_with_its_own_weights() -> None:
    heads = [cross(seed, head=seed) for seed in range(5)]
    svg = sheet(heads, Form("svg", width=17, columns=3)).data.decode()
    for head in heads:
        np.testing.assert_allclose(cells(svg, head), head.weights[head.mask], atol=1 / 200)


@pytest.mark.parametrize("width", [6.0, 8.5, 17.0])
def test_the_file_is_as_wide_as_asked(width: float) -> None:
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+)", sheet([cross()], Form("pdf", width)).data)
    assert float(box[1]) / POINTS * INCH == pytest.approx(width, abs=0.01)
    png = sheet([cross()], Form("png", width)).data
    with Image.open(io.BytesIO(png)) as image:
        assert image.width == pytest.approx(width / INCH * 300, abs=1)
        assert image.info["dpi"][0] == pytest.approx(300, abs=0.1)


def test_the_provenance_is_in_the_metadata_and_under_the_figure_only_if_asked() -> None:
    plain, noted = (sheet([cross()], Form("svg", footnote=noted), ABOUT) for noted in (False, True))
    assert "?text=a&amp;b=&lt;c&gt;" in plain.data.decode()
    assert noted.height > plain.height
    assert len(noted.data) > len(plain.data)
    with Image.open(io.BytesIO(sheet([cross()], Form("png"), ABOUT).data)) as image:
        assert "?text=a&b=<c>" in image.info["Description"]


@pytest.mark.parametrize("file", FILES)
def test_the_same_figure_gives_the_same_bytes(file: str) -> None:
    assert sheet([cross()], Form(file)).data == sheet([cross()], Form(file)).data  # type: ignore[arg-type]


@pytest.mark.parametrize("file", FILES)
def test_hostile_tokens_are_text(file: str) -> None:
    tokens = ("▁$x^2$", "▁<script>", "▁#1", "\u202eevil", "▁" + "a" * 200, "")
    assert sheet([view("encoder", tokens, tokens)], Form(file)).data  # type: ignore[arg-type]


@pytest.mark.parametrize("file", FILES)
def test_letters_that_no_font_has_are_told_in_one_sentence(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "families", lambda texts: (("DejaVu Sans",), ("猫",)))
    tokens = ("▁a", "▁猫")
    (note,) = sheet([view("encoder", tokens, tokens)], Form(file)).notes  # type: ignore[arg-type]
    assert "猫" in note
    assert note.count(".") == 1


def test_labels_without_room_are_left_out_and_told() -> None:
    assert "label" in sheet([decoder_view(64)], Form("svg", width=5)).notes[0]
    assert not sheet([decoder_view(6)], Form("svg", width=17)).notes


def labels_of(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_sixty_tokens_keep_all_their_labels_at_the_usual_width() -> None:
    head = decoder_view(60)
    written = labels_of(sheet([head], replace(Form.usual_for(1, 60), file="svg")).data.decode())
    assert {f"w{i}" for i in range(59)} <= set(written)


def test_letters_are_text_in_an_svg_and_truetype_in_a_pdf() -> None:
    tokens = ("▁müde", "▁<b>")
    head = view("encoder", tokens, tokens)
    assert labels_of(sheet([head], Form("svg")).data.decode()).count("müde") == 2
    pdf = sheet([head], Form("pdf")).data
    assert b"/CIDFontType2" in pdf
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf


def test_a_pdf_with_fonts_that_publishers_refuse_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "without_truetype", lambda names: ("Some CFF",))
    made = sheet([cross()], Form("pdf"))
    assert b"/Type3" in made.data
    assert "Some CFF" in made.notes[0]
    assert "Some CFF" in sheet([cross()], Form("pdf", draft=True)).notes[0]
    assert not sheet([cross()], Form("png")).notes


def test_a_draft_is_a_png_of_the_same_size() -> None:
    draft, saved = (sheet([cross()], Form("pdf", draft=each)) for each in (True, False))
    assert draft.data.startswith(b"\x89PNG")
    assert saved.data.startswith(b"%PDF")
    assert (draft.width, draft.height, draft.notes) == (saved.width, saved.height, saved.notes)


def right_ends(svg: str, letters: float) -> list[float]:
    """Where the texts that begin at the left of an SVG end."""
    placed = re.findall(r'<text [^>]*anchor: start[^>]* x="([\d.]+)"[^>]*rotate\(-0[^>]*>([^<]*)<', svg)
    return [float(x) + text_width(text, letters) for x, text in placed]


def test_titles_and_legend_stay_inside_a_narrow_sheet() -> None:
    heads = [view(kind, ("▁a", "▁b"), ("▁a", "▁b")) for kind in style.HUES]
    form = Form("svg", width=8.5, columns=3)
    ends = right_ends(sheet(heads, form).data.decode(), form.letters)
    assert len(ends) > 6
    assert max(ends) < form.points + 0.1 * form.letters


@pytest.mark.parametrize("heads", [[], [cross()] * (MOST_HEADS + 1)])
def test_a_sheet_holds_one_to_twelve_heads(heads: list[View]) -> None:
    with pytest.raises(ValueError, match="holds 1 to 12"):
        sheet(heads, Form())


def test_no_room_for_maps_is_told() -> None:
    with pytest.raises(ValueError, match="leave no room"):
        sheet([cross(head=i) for i in range(6)], Form(width=3, letters=24, columns=6))


@pytest.mark.parametrize("wrong", [{"width": 0}, {"letters": 99}, {"columns": 0}, {"file": "exe"}])
def test_forms_outside_their_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"must be from|no format"):
        Form(**wrong)  # type: ignore[arg-type]


def test_matplotlib_is_not_imported_before_a_figure_is_drawn() -> None:
    code = "import sys, ui.maps.take_home, figures.paper.sheet; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
