"""One door for every model: each page and section shows a picture of it, or a sentence with a way
on, and nothing fails."""

from itertools import product
from pathlib import Path

import pytest
from app_pages import run
from decoder_models import write_decoder

from explorer.app.address import sitemap

MODELS = {
    "en-pt": "The cat is old.",
    "en-de": "The cat is old.",
    "positions/rotary": "The cat is old.",
    "recurrent/additive": "The cat is old.",
    "language/lm-en": "Tom likes Mary. Mary likes",
    "gpt2": "the old house",
    "llama": "the old house",
}
"""A model of every kind by the name in its address, and a text for it."""
MADE = {"gpt2": "GPT-2", "llama": "Llama, groups of three"}
"""Those that a test makes: random ones of other programs' formats."""
ADDRESSES = [
    (sitemap.script(name), view)
    for name, page in sitemap.PAGES.items()
    for view in (*page.sections, *page.ways) or (None,)
]


@pytest.fixture(scope="module")
def models(app_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the models of others, beside the bundled ones."""
    folder = tmp_path_factory.mktemp("door")
    for name, kind in MADE.items():
        write_decoder(folder / name, kind)
    return folder


@pytest.mark.parametrize(
    ("name", "address"),
    [*product(MODELS, ADDRESSES)],
    ids=lambda value: value if isinstance(value, str) else "/".join(filter(None, value)),
)
def test_every_page_shows_every_model_or_says_why_not(
    name: str, address: tuple[str, str | None], models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSFORMER_MODELS", str(models))
    page, view = address
    at = run(page, model=name, text=MODELS[name], write="4", view=view)
    pictures = [*at.get("plotly_chart"), *at.get("bidi_component"), *at.get("dataframe")]
    assert not at.error
    assert at.session_state["state"].model == name
    assert pictures or at.info or at.button or at.file_uploader
