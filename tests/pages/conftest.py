"""Pages that find small models, made once, instead of those that a visitor trained."""

from pathlib import Path

import pytest
from app_pages import SENTENCE, write_app_models

from explorer.app.server import surveys
from explorer.lenses.heads.survey import Line
from transformer.translator import Translator


@pytest.fixture(scope="session")
def app_models(
    closed_form_models: dict[str, Path],
    translator: Translator,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The folder of models that all pages find; never changed, so that each model is loaded
    once."""
    return write_app_models(tmp_path_factory.mktemp("app-models"), closed_form_models, translator)


@pytest.fixture(autouse=True)
def small_models(app_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The app finds the folder through the environment, surveys one sentence, and chooses heads
    quickly.

    Random models never end a translation, so the first heads would be chosen by six long ones.
    """
    monkeypatch.setenv("TRANSFORMER_MODELS", str(app_models))
    monkeypatch.setattr("explorer.lenses.heads.statistics.MOST_TOKENS", 3)
    monkeypatch.setattr(surveys, "sample", lambda _: (Line(SENTENCE),))


@pytest.fixture
def own_models(
    small_models: None, app_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A folder with the same models that a test may change."""
    folder = tmp_path / "own-models"
    folder.mkdir()
    for path in app_models.iterdir():
        (folder / path.name).symlink_to(path.resolve())
    monkeypatch.setenv("TRANSFORMER_MODELS", str(folder))
    return folder
