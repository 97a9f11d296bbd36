"""Every page with every kind of model in its address: it shows it, or says in a sentence why it does not."""

import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from app_pages import PAGES, run
from bart_models import write_bart, write_mbart
from m2m_models import write_m2m
from marian_models import write_marian
from nightly import thinned
from random_models import random_language_model
from t5_models import write_t5

from explorer.app.controls import plain
from transformer.devices import AUTO, named
from transformer.storage.directory import save_checkpoint
from transformer.text.tokenizer import Tokenizer


def write_own_writer(folder: Path, tokenizer: Tokenizer) -> None:
    model = random_language_model(vocab_size=tokenizer.vocab_size, trained_length=30)
    save_checkpoint(folder / "writer", model.config, model.state_dict(), tokenizer)


def write_damaged(folder: Path, tokenizer: Tokenizer) -> None:
    shutil.copytree(folder / "copy", folder / "damaged")
    (folder / "damaged" / "model.safetensors").write_bytes(b"x" * 100)


def write_aliases(folder: Path, tokenizer: Tokenizer) -> None:
    """A card whose licence would grow to gigabytes."""
    shutil.copytree(folder / "copy", folder / "aliases")
    lines = [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(2, 9)]
    card = "\n".join(["---", "a1: &a1 x", *lines, "license: *a8", "good_at: *a8", "---", ""])
    (folder / "aliases" / "README.md").write_text(card)


MODELS: dict[str, Callable[[Path, Tokenizer], object] | None] = {
    "language/lm-en": None,
    "birth": None,
    "positions/t5": None,
    "recurrent/local": None,
    "writer": write_own_writer,
    "opus": lambda folder, _: write_marian(folder / "opus"),
    "t5": lambda folder, _: write_t5(folder / "t5", feed_forward="gated-gelu", tied=False),
    "nllb": lambda folder, _: write_m2m(folder / "nllb", kind="nllb"),
    "mbart": lambda folder, _: write_mbart(folder / "mbart"),
    "bart": lambda folder, _: write_bart(folder / "bart"),
    "damaged": write_damaged,
    "aliases": write_aliases,
    "nothing": None,
}
"""Models by what an address calls them; how to make those that are not bundled."""
NO_NAMES = ("../copy", "imported: run (abcdef)")
"""What an address may say that names no model: like ``nothing``, but of another form."""
FEW = ("app.py", "pages/masks.py", "pages/heads.py", "pages/language_model.py", "pages/what_if.py")
"""Pages of every sort: with a linked view, with a sentence, with a model, with a text, with changes."""


@pytest.fixture(scope="module")
def every_kind(app_models: Path, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of every kind, so that each is loaded once."""
    folder = tmp_path_factory.mktemp("every-kind")
    for path in app_models.iterdir():
        (folder / path.name).symlink_to(path.resolve())
    for make in filter(None, MODELS.values()):
        make(folder, tokenizer)
    return folder


@pytest.mark.parametrize(("name", "page"), thinned([*product(MODELS, PAGES), *product(NO_NAMES, FEW)], 7))
def test_a_page_opens_with_a_model_of_any_kind(
    page: str, name: str, every_kind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSFORMER_MODELS", str(every_kind))
    at = run(page, model=name, text="He is old.")  # nothing may go wrong
    assert at.session_state["state"].model != "../copy"
    if name == "aliases" and page == "app.py":
        where = "the CPU" if named(AUTO) != "cuda" else "a GPU, if there is one"
        assert any("uses YAML aliases, so it is not read" in each.value for each in at.caption)
        assert at.get("bidi_component")
        assert plain(f"aliases runs on {where}.") in [each.proto.help for each in at.caption]
