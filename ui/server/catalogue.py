"""The models that visitors can choose, each loaded once and shared."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import streamlit as st

import transformer
from transformer.families.registry import family_of, is_model
from transformer.hub.cache import hub_title
from transformer.hub.files import size
from transformer.model.config import SCORE_RULES, ModelConfig
from transformer.model.encodings.table import ENCODINGS
from transformer.model.sites import AttentionKind, Head
from transformer.runs import devices
from transformer.storage.description import Description, languages_of, read_header
from transformer.storage.files import read_json
from transformer.storage.header import Header
from ui.server import hub_models, imported, memory
from ui.server.language.writer import Writer, load_writer
from ui.server.loading import Loading
from ui.server.stores import Key, Model, Recent, Residents, once

ROOT = Path(__file__).resolve().parents[2]
BUNDLED = ROOT / "assets" / "models"
DEFAULT = "en-pt"
"""Opens first: of the bundled models the one with most acceptable translations on the blind list."""
TWINS = "positions"
"""Folder of the models that differ only in their positional encoding."""
RECURRENT = "recurrent"
"""Folder of the recurrent models, which differ only in the score of their attention."""
LANGUAGE = "language"
"""Folder of the language models."""
FOLDERS = ("", TWINS, RECURRENT, LANGUAGE)
"""Where models lie, within the bundled ones and within those trained here; part of their names."""
_FOLDER_NAMES = {TWINS: "Positional twin", RECURRENT: "Recurrent twin"}
_TITLES = {
    "birth": "Emergence of heads",
    "firefox-en-pt": "Firefox, English → Portuguese",
    "language/lm-en": "English language model",
}
"""Titles of bundled models whose names are no languages."""
LANGUAGES = {
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "nl": "Dutch",
    "pt": "Portuguese",
}
"""English names of languages by their codes."""
_USUAL = ("eng_", "__en__", "en_"), ("deu_", "__de__", "de_", "<2de>")
"""How the pieces of English and German begin."""
_NO_NAMES = ("", ".", "..")
KINDS = tuple(str(kind) for kind in AttentionKind)
NEEDS_MODEL = "This needs the model, which an imported file does not hold: choose a model on the left."
LARGE = 100_000_000
"""From this many bytes on, the list of models says how much memory a model needs."""
MOST_MODELS = 4
"""Most models in memory, without the twins; `TRANSFORMER_MOST_MODELS` in the environment changes it."""


@dataclass(frozen=True)
class ModelHandle:
    """A model on this machine, and what its files say of it without PyTorch."""

    name: str  # as in the list of models
    path: Path  # its directory
    changed: int  # when a file of the directory was last changed, in nanoseconds

    @property
    def key(self) -> Key:
        """Key that tells the model from others, and from itself before a change."""
        return self.name, str(self.path), self.changed

    @cached_property
    def needs(self) -> int:
        """Bytes of memory that the loaded model takes; 0 if it cannot be loaded."""
        return memory.of_model(self.path)

    @cached_property
    def description(self) -> Description | None:
        """Description by the files; None if only the loaded model knows."""
        return family_of(self.path).describe(self.path)

    @cached_property
    def config(self) -> ModelConfig:
        """Its config, read without the weights."""
        return self.description.config if self.description else family_of(self.path).config(self.path)

    @cached_property
    def header(self) -> Header:
        """The header of its card."""
        return read_header(self.path)

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The codes of its two languages; empty if the card does not name two."""
        return languages_of(self.path) or ()

    @property
    def languages(self) -> str:
        """Its languages, such as "English → German"; empty as above."""
        return " → ".join(LANGUAGES.get(code, code) for code in self.codes)

    @property
    def title(self) -> str:
        """What people call it: its languages, what it is a twin of, or its name."""
        folder, _, own = self.name.rpartition("/")
        if self.named_by_languages:
            return self.languages
        return (
            f"{_FOLDER_NAMES[folder]}: {own}"
            if folder in _FOLDER_NAMES
            else _TITLES.get(self.name, self.name.removeprefix(f"{LANGUAGE}/"))
        )

    @cached_property
    def label(self) -> str:
        """Its label in the list; a model on the Hub shows its owner last, as the list is narrow."""
        owner, _, model = self.name.partition("/") if hub_title(self.path) else ("", "", self.title)
        needs = size(self.needs) if self.needs >= LARGE else ""
        return " · ".join(filter(None, (model, needs, owner)))

    @property
    def named_by_languages(self) -> bool:
        """Whether its name is nothing but the codes of its languages."""
        return self.name == "-".join(self.codes)

    @property
    def resident(self) -> bool:
        """Whether the model is in memory."""
        return self.key in self._home

    @property
    def runs(self) -> str:
        """Where it computes, in one sentence."""
        if self.resident:
            return f"{self.name} runs on the {'CPU' if self.load().device.type == 'cpu' else 'GPU'}."
        try:
            stays = devices.stays(self.needs // 4)
        except ValueError as error:  # the environment names no device
            return str(error)
        return f"{self.name} runs on the CPU." if stays else f"{self.name} runs on a GPU, if there is one."

    @property
    def _home(self) -> Residents:
        twin = self.name.startswith((f"{TWINS}/", f"{RECURRENT}/"))
        return _resident_twins() if twin else _residents()

    def load(self) -> Model:
        """The loaded model, once per server, and again if its directory has changed."""
        return self._home.get(self.key, self.needs, self._load)

    def _load(self) -> Model:
        return load_writer(self.path) if _writes(self.path) else transformer.load_translator(self.path)


@st.cache_resource(show_spinner=False)
def _handles() -> Recent[ModelHandle]:
    return Recent(256)


def _handle(name: str, path: Path) -> ModelHandle:
    found = ModelHandle(name, path, changed(path))
    return _handles().get(found.key, lambda: found)


@st.cache_resource(show_spinner=False)
def _residents() -> Residents:
    return Residents(int(os.environ.get("TRANSFORMER_MOST_MODELS") or MOST_MODELS))


@st.cache_resource(show_spinner=False)
def _resident_twins() -> Residents:
    return Residents(12)


def leave_gpu() -> None:
    """Lets every model in memory compute on the CPU, since the GPU has no memory left."""
    for home in (_residents(), _resident_twins()):
        home.leave_gpu()


def residents() -> Callable[[], int]:
    """Counts the models in memory whenever it is called, in any thread."""
    homes = _residents(), _resident_twins()
    return lambda: sum(map(len, homes))


@st.cache_resource(show_spinner=False)
def loading() -> Loading:
    """PyTorch and the model that opens first; whatever imports PyTorch waits for them first."""
    return Loading(lambda: _handle(*next(iter(_on_disk().items()))).load())


def own_models() -> Path:
    return Path(os.environ.get("TRANSFORMER_MODELS") or ROOT / "models")


def _checkpoints(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _is_model(path))


def _is_model(path: Path) -> bool:
    """Whether a directory holds a model under a name that an address can carry and no opened file has."""
    usable = path.name.isprintable() and not imported.is_imported(path.name)
    try:
        return usable and is_model(path)
    except OSError:  # longer than the name of a file may be
        return False


def available() -> dict[str, Path]:
    """The models that translate, by name: bundled, trained, twins, and cached from the Hub."""

    def look() -> dict[str, Path]:
        found = _on_disk()
        return found | {name: path for name, path in hub_models.cached().items() if name not in found}

    return once(available, look)


def _on_disk() -> dict[str, Path]:
    found = {path.name: path for path in _checkpoints(BUNDLED)}
    for path in _checkpoints(own_models()):
        if not _writes(path):
            found.setdefault(path.name, path)
    first = {DEFAULT: found[DEFAULT]} if DEFAULT in found else {}
    return first | found | twins() | recurrent()


def _writes(path: Path) -> bool:
    """Whether a directory holds a language model: it reads no source, so it translates nothing."""
    try:
        return read_json(path / "config.json").get("architecture") == "language_model"
    except ValueError:
        return False


def _in_folder(name: str) -> dict[str, Path]:
    """The models in a folder of models, by their names there: bundled, then trained here."""
    found = {path.name: path for path in _checkpoints(BUNDLED / name)}
    for path in _checkpoints(own_models() / name):
        found.setdefault(path.name, path)
    return found


def language_models() -> dict[str, Path]:
    """The language models by name, such as `language/lm-en`, and those among a visitor's own models."""
    found = {f"{LANGUAGE}/{name}": path for name, path in _in_folder(LANGUAGE).items() if _writes(path)}
    return found | {path.name: path for path in _checkpoints(own_models()) if _writes(path)}


def twins() -> dict[str, Path]:
    """The positional twins by name, such as `positions/rotary`: in the usual order, then the others."""
    found = _in_folder(TWINS)
    names = [
        *(name for name in ENCODINGS if name in found),
        *(name for name in found if name not in ENCODINGS),
    ]
    return {f"{TWINS}/{name}": found[name] for name in names}


def recurrent() -> dict[str, Path]:
    """The recurrent twins by name, such as `recurrent/additive`: in the usual order, then the others."""
    found = _in_folder(RECURRENT)
    names = [
        *(name for name in SCORE_RULES if name in found),
        *(name for name in found if name not in SCORE_RULES),
    ]
    return {f"{RECURRENT}/{name}": found[name] for name in names}


def translator(name: str) -> transformer.Translator:
    """The model of that name if it translates; further as `model`.

    Raises:
        KeyError: there is no model of that name that translates.
    """
    found = model(name)
    if isinstance(found, Writer):
        raise KeyError(name)
    return found


def writer(name: str) -> Writer:
    """The language model of that name; further as `model`.

    Raises:
        KeyError: there is no language model of that name.
    """
    found = model(name)
    if not isinstance(found, Writer):
        raise KeyError(name)
    return found


def model(name: str) -> Model:
    """The model of that name, loaded once per server, and again if its directory has changed.

    Raises:
        KeyError: there is no model of that name; a path is no name.
        NoModelError: the name belongs to an imported file, which holds a run without its model.
        ValueError: the directory is damaged.
    """
    if imported.is_imported(name):
        raise NoModelError(NEEDS_MODEL)
    found = find(name)
    loading().wait()
    return found.load()


def find(name: str) -> ModelHandle:
    """The model of that name, looked for once per run of a page.

    Raises:
        KeyError: there is no model of that name; a path is no name.
    """
    return once((find, name), lambda: _handle(name, directory(name)))


def directory(name: str) -> Path:
    """The directory of a model.

    Raises:
        KeyError: there is no model of that name; a path is no name.
    """
    folder, _, own = name.rpartition("/")
    if folder in FOLDERS and own not in _NO_NAMES:
        for place in (BUNDLED, own_models()):
            if _is_model(path := place / folder / own):
                return path
    return hub_models.cached_model(name)


def exists(name: str) -> bool:
    """Whether there is a model of that name."""
    try:
        find(name)
    except KeyError:
        return False
    return True


def changed(path: Path) -> int:
    """When a file of a directory was last changed, in nanoseconds."""
    with os.scandir(path) as files:
        return max((each.stat().st_mtime_ns for each in files if os.path.exists(each)), default=0)


class NoModelError(ValueError):
    """A view needs the model, but the run was opened from a file."""


def has_model(name: str) -> bool:
    """Whether a name in the list of models belongs to a model, not to an imported file."""
    return not imported.is_imported(name)


def guided(name: str) -> str:
    """The card's sentence on attention that was trained with given word alignments; empty without any."""
    return find(name).header.guided_alignment if has_model(name) else ""


def languages(name: str) -> tuple[str, ...]:
    """The pieces that name a target language, such as `>>fra<<`; empty if the model has only one language."""
    try:
        pieces = _config(name).language_pieces if has_model(name) else ()
    except (ValueError, OSError):
        return ()
    return pieces if len(pieces) > 1 else ()


def addressed(name: str, text: str, language: str | None) -> str:
    """The text for a model of several languages: one that names no language gets the chosen one in front."""
    pieces = languages(name)
    return text if not pieces or named_in(name, text) else f"{language_of(name, language)} {text}"


def named_in(name: str, text: str) -> str | None:
    """The language, or the two languages, that a text itself names for a model; None if it names none."""
    pieces = languages(name)
    if pairs(name):
        first = text.split()[:2]
        return " ".join(first) if len(first) == 2 and set(first) <= set(pieces) else None
    return next((piece for piece in pieces if text.startswith(piece)), None)


def pairs(name: str) -> bool:
    """Whether a model is told the language of the text, too."""
    return bool(languages(name)) and _config(name).names_pair


def language_of(name: str, language: str | None) -> str:
    """The target language: the chosen one if the model knows it, otherwise German, or the model's first.

    For a model that is told both, the two of them; usually from English into German.
    """
    pieces = languages(name)
    if not pairs(name):
        usually = next((each for each in pieces if each.startswith(_USUAL[1])), pieces[0])
        return language if language in pieces else usually
    asked = (language or "").split()
    if len(asked) == 2 and set(asked) <= set(pieces):
        return " ".join(asked)
    usual = [next((each for each in pieces if each.startswith(of)), "") for of in _USUAL]
    return " ".join(usual if all(usual) else pieces[:2])


def task(name: str | None) -> str:
    """What a model does with a text: `translate`, or `write` what the text asks for."""
    return getattr(_known(name), "task", "translate")


def prompts(name: str | None) -> tuple[str, ...]:
    """Beginnings of texts that tell a model what to do; empty for one that needs none."""
    found: tuple[str, ...] = getattr(_known(name), "prompt_texts", ())
    return found


def _known(name: str | None) -> ModelConfig | None:
    """The config of a model as far as its files tell without loading it; None if they cannot be read."""
    try:
        found = find(name or DEFAULT) if has_model(name or DEFAULT) else None
        if found is None:
            return _config(name or DEFAULT)
        return found.load().config if found.resident else found.config
    except (KeyError, ValueError, OSError):
        return None


def sizes(name: str) -> dict[str, Head]:
    """Number of layers and heads by kind."""
    return _config(name).sizes


def kind(name: str, asked: str | None) -> str:
    """The kind of attention asked for; cross-attention if it is none of the model's."""
    return asked if asked in sizes(name) else "cross"


def _config(name: str) -> ModelConfig:
    return _about(name).config if has_model(name) else imported.find(name).translation.config


def facts(name: str) -> dict[str, Any]:
    """The contents of `heads.json`; empty if the model has none."""
    return (_about(name).heads or {}) if has_model(name) else {}


def _about(name: str) -> Description | Model:
    return find(name).description or model(name)
