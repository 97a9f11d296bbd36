"""Every section of every page opens with a model of each architecture: a picture, or a sentence why not."""

from collections.abc import Callable
from pathlib import Path

import pytest
from app_pages import PAGES, functions, run
from random_models import random_config, random_recurrent, randomised

from explorer.app.address import sitemap
from transformer.model import Transformer
from transformer.storage.directory import save_checkpoint
from transformer.translator import Translator

SECTIONS = {sitemap.script(name): (*page.sections, *page.ways) for name, page in sitemap.PAGES.items()}
ADDRESSES = [(page, view) for page in PAGES for view in SECTIONS[page] or (None,)]
ARCHITECTURES: dict[str, Callable[[Path, Translator], None]] = {
    "without-start": lambda path, translator: _without_start(path, translator),
    "recurrent": lambda path, translator: _save(path, translator),
}


def _without_start(path: Path, translator: Translator) -> None:
    """A model of the shape of en-pt: post-norm, a start of zeros, no `<s>`."""
    pieces = translator.config.vocab_size
    config = random_config(vocab_size=pieces, norm="post", pad_id=pieces, bos_id=pieces, eos_id=0, unk_id=1)
    save_checkpoint(path, config, randomised(Transformer(config)).state_dict(), translator.tokenizer)


def _save(path: Path, translator: Translator) -> None:
    model = random_recurrent("additive", vocab_size=translator.config.vocab_size)
    save_checkpoint(path, model.config, model.state_dict(), translator.tokenizer)


@pytest.fixture(scope="module")
def models(app_models: Path, translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("architectures")
    for name, write in ARCHITECTURES.items():
        write(folder / name, translator)
    (folder / "random").symlink_to(app_models / "random")
    return folder


@pytest.fixture(autouse=True)
def architectures(small_models: None, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSFORMER_MODELS", str(models))


def test_every_section_has_what_draws_it():
    assert set(functions("pages/language_model.py")["SECTIONS"]) == set(
        sitemap.PAGES["language_model"].sections
    )


@pytest.mark.parametrize(("page", "view"), ADDRESSES)
@pytest.mark.parametrize("model", ["random", *ARCHITECTURES])
def test_a_section_shows_a_picture_or_says_why_not(model: str, page: str, view: str | None):
    at = run(page, model=model, text="one two", **({} if view is None else {"view": view}))
    assert not at.error
    shown = [*at.get("plotly_chart"), *at.get("bidi_component"), *at.get("dataframe")]
    assert shown or at.info or at.button or at.file_uploader
