"""Models that other programs keep on this machine, as entries of the list of models."""

import json
from pathlib import Path

import pytest
from decoder_models import write_decoder, write_gguf

from explorer.app.server import memory, models
from transformer.hub import machine
from transformer.hub.machine import Keeper
from transformer.hub.settings import HOSTED_VARIABLE

OLLAMA, STUDIO = "ollama/small:1b", "lmstudio/someone/small-GGUF/small-Q8_0"
DIGEST = "ab" * 32


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gguf")
    (folder / "llama").mkdir()
    write_decoder(folder / "llama", "Llama, groups of three")
    write_gguf(folder / "small.gguf", folder / "llama", "llama")
    return folder / "small.gguf"


@pytest.fixture(autouse=True)
def home(gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home where Ollama and LM Studio keep a model each."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(machine.OLLAMA_VARIABLE, raising=False)
    monkeypatch.setattr(machine, "OLLAMA_FOLDERS", ("~/.ollama/models",))
    monkeypatch.setattr(
        machine, "LM_STUDIO_FOLDERS", ("~/.lmstudio/models", "~/.cache/lm-studio/models")
    )
    ollama = tmp_path / ".ollama/models"
    manifest = ollama / "manifests/registry.ollama.ai/library/small/1b"
    studio = tmp_path / ".lmstudio/models/someone/small-GGUF/small-Q8_0.gguf"
    blob = ollama / f"blobs/sha256-{DIGEST}"
    for path in (manifest, blob, studio):
        path.parent.mkdir(parents=True)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{DIGEST}"}
    manifest.write_text(json.dumps({"layers": [layer]}))
    for path in (blob, studio):
        path.write_bytes(gguf.read_bytes())
    models.looked_for.cache_clear()
    return tmp_path


def test_they_are_listed_after_all_others_and_open_under_their_own_name(home: Path) -> None:
    names = list(models.available())
    assert names[-2:] == [STUDIO, OLLAMA]
    ollama, studio = models.find(OLLAMA), models.find(STUDIO)
    assert isinstance(ollama, models.ModelHandle)
    assert isinstance(studio, models.ModelHandle)
    assert (ollama.keeper, studio.keeper) == (Keeper.OLLAMA, Keeper.LM_STUDIO)
    assert ollama.label == "small:1b · Ollama"
    assert studio.label == "small-Q8_0 · LM Studio"
    assert ollama.nbytes == ollama.path.stat().st_size
    model = ollama.load(first=True)
    assert model.continues
    assert model.name == OLLAMA
    bundled = models.find(models.DEFAULT)
    assert isinstance(bundled, models.ModelHandle)
    assert bundled.keeper is None


def test_the_list_has_translators_then_language_models_then_encoders_then_twins() -> None:
    known = models.available()
    names = models.grouped(known)
    assert sorted(names) == sorted(known)
    assert names[:2] == ["en-pt", "en-de"]
    at = names.index(OLLAMA)
    assert [known[name].task for name in names[2 : at + 1]] == ["continue"] * (at - 1)
    assert names[at + 1] == "encoder/masked-en"
    assert {name.partition("/")[0] for name in names[at + 2 :]} == {"positions", "recurrent"}


def test_a_large_one_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    handle = models.find(OLLAMA)
    assert isinstance(handle, models.ModelHandle)
    assert handle.lacks_memory == ""
    monkeypatch.setattr(memory, "available", lambda: 1_000)
    assert (
        handle.lacks_memory
        == f"It needs {handle.needs / 1e3:.1f} kB of memory, and 1.0 kB is free."
    )


def test_one_that_cannot_be_opened_is_left_out_with_the_reason(home: Path, gguf: Path) -> None:
    content = gguf.read_bytes()
    foreign = content.replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0mamba", 1)
    (home / f".ollama/models/blobs/sha256-{DIGEST}").write_bytes(foreign)
    assert OLLAMA not in models.available()
    assert "has the architecture 'mamba'" in models.unlisted()[OLLAMA]
    assert models.unlisted()[OLLAMA].startswith(OLLAMA)
    assert models.known(OLLAMA) is None


def test_one_that_is_gone_leaves_the_list(home: Path) -> None:
    assert OLLAMA in models.available()
    (home / f".ollama/models/blobs/sha256-{DIGEST}").unlink()
    assert OLLAMA not in models.available()


def test_where_anybody_may_come_nobody_sees_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOSTED_VARIABLE, "on")
    assert not {OLLAMA, STUDIO} & {*models.available(), *models.unlisted()}
