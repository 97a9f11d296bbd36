"""Pages without a browser: all open, say what their figures are, and bear what is damaged or
hostile."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.acceptance import surface

TEXT = "The old house is not for sale."
HOSTILE = [
    "<script>alert(1)</script> <b>{x} %{z} **one** $\\frac$",
    "one\x00\u202etwo 😀 <pad> </s>",
    "a b " * 9000,
]


def opened(page: str, **address: str) -> AppTest:
    """A page with an address; nothing may go wrong."""
    at = AppTest.from_file(str(surface.ROOT / surface.HOME), default_timeout=60)
    at.query_params.update({"model": "en-de", "text": TEXT, **address})
    if page:
        at.switch_page(surface.SCRIPT.format(page))
    at.run()
    assert not at.exception, (page, address, at.exception[0].message)
    return at


def leaves(block: Any) -> Iterator[Any]:
    for child in block.children.values():
        yield from leaves(child) if hasattr(child, "children") else [child]


@pytest.mark.parametrize("page", ["", *surface.PAGES])
def test_every_page_opens_with_en_de_and_describes_its_figures(page: str) -> None:
    at = opened(page, step="3", cross="2.4")
    assert (len(str(at.main)) > 600, list(at.error)) == (True, [])
    shown = [leave for leave in leaves(at.main) if leave.type in ("plotly_chart", "caption")]
    for figure, words in pairwise([*shown, None]):
        if figure.type == "plotly_chart":
            assert (len(figure.proto.alt) > 20, words.type) == (True, "caption")
            assert page not in surface.JUDGED or re.search(surface.BADGE, words.value), words.value


@pytest.mark.parametrize("model", [*surface.TRANSLATORS, surface.LANGUAGE])
def test_every_model_opens_on_three_pages(model: str) -> None:
    places = [("", {}), ("cross_attention", {}), ("inside_a_head", {})]
    if model == surface.LANGUAGE:
        places = [
            ("", {}),
            *(("training", {"view": view}) for view in ("surprisal", "lengths")),
        ]
    for page, address in places:
        at = opened(page, model=model, **address)
        assert list(at.error) == []
        assert model in [each.value for each in at.selectbox], page


def test_damaged_files_beside_a_model_cost_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(surface.FOLDER, str(tmp_path))
    for worn, page in {"examples.json": "", "heads.json": "heads"}.items():
        (tmp_path / worn).mkdir()
        (tmp_path / worn / worn).write_text("{")
        for name in ("config.json", "model.safetensors", "tokenizer.model"):
            (tmp_path / worn / name).symlink_to(surface.MODELS / "en-de" / name)
        at = opened(page, model=worn)
        lines = [
            each.value.replace("\\", "") for each in (*at.error, *at.warning, *at.info, *at.caption)
        ]
        assert len([line for line in lines if "damaged" in line and worn in line]) == 1, lines


def test_hostile_text_breaks_no_page() -> None:
    for text in HOSTILE:
        at = opened("")
        at.text_input[0].set_value(text).run()
        assert not at.exception
    assert surface.translator("en-de").translate("\ud800 house").audit().passed
