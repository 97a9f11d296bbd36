"""The models that visitors can choose, each loaded once and shared; what a name stands for."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import transformer
from explorer.app.server import catalogue, imported, memory
from explorer.app.server.catalogue import DEFAULT, LANGUAGE, RECURRENT, TWINS
from explorer.app.server.loading import Loading
from explorer.app.server.source import FILE, Source
from explorer.app.server.stores import Key, Model, Recent, Residents, once
from explorer.app.server.writer import load_writer
from explorer.lenses.words.languages import languages_in_words, languages_of
from transformer import devices
from transformer.config import Head, ModelConfig
from transformer.families.registry import config_in, described
from transformer.hub.files import hub_title, size
from transformer.storage.card import Header
from transformer.storage.description import Description, read_header

_FOLDER_NAMES = {TWINS: "Positional twin", RECURRENT: "Recurrent twin"}
_TITLES = {"language/lm-en": "English language model"}
"""Titles of bundled models whose names are no languages."""
LARGE = 100_000_000
"""From this many bytes on, the list of models says how much memory a model needs."""
MOST_MODELS = 4
"""Most models in memory, without the twins; `TRANSFORMER_MOST_MODELS` in the environment changes it."""


@dataclass(frozen=True)
class ModelHandle(Source):
    """A model on this machine, and what its files say of it without PyTorch."""

    name: str  # as in the list of models
    path: Path  # its directory
    changed: int  # when a file of the directory was last changed, in nanoseconds

    @cached_property
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
        return described(self.path)

    @cached_property
    def config(self) -> ModelConfig:
        return self._description.config

    @cached_property
    def sizes(self) -> dict[str, Head]:
        return self.config.sizes

    @property
    def heads(self) -> dict[str, Any]:
        return self._description.heads or {}

    @property
    def _description(self) -> Description | Model:
        return self.description or self.load()

    @property
    def stated(self) -> ModelConfig | None:
        try:
            return self.load().config if self.resident else self._written
        except (ValueError, OSError):
            return None

    @cached_property
    def _written(self) -> ModelConfig:
        return self.description.config if self.description else config_in(self.path)

    @cached_property
    def header(self) -> Header:
        """The header of its card."""
        return read_header(self.path)

    @cached_property
    def guided(self) -> str:
        return self.header.guided_alignment

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The codes of its two languages; empty if the card does not name two."""
        return languages_of(self.path) or ()

    @property
    def languages(self) -> str:
        """Its languages, such as "English → German"; empty as above."""
        return languages_in_words(self.codes)

    @property
    def title(self) -> str:
        """What people call it: its languages, what it is a twin of, or its name."""
        folder, _, own = self.name.rpartition("/")
        if self.named_by_languages:
            return self.languages
        if folder in _FOLDER_NAMES:
            return f"{_FOLDER_NAMES[folder]}: {own}"
        return _TITLES.get(self.name, self.name.removeprefix(f"{LANGUAGE}/"))

    @cached_property
    def label(self) -> str:
        """Its label in the list; a model on the Hub shows its owner last, as the list is narrow."""
        owner, _, model = self.name.partition("/") if hub_title(self.path) else ("", "", self.title)
        needs = size(self.needs) if self.needs >= LARGE else ""
        return " · ".join(filter(None, (model, needs, owner)))

    @cached_property
    def named_by_languages(self) -> bool:
        """Whether its name is nothing but the codes of its languages."""
        return self.name == "-".join(self.codes)

    @property
    def resident(self) -> bool:
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
        return _resident_twins if twin else _residents

    def load(self) -> Model:
        loading().wait()
        return self.load_first()

    def load_first(self) -> Model:
        """The loaded model, for the one who loads before all others: nothing is waited for."""
        load = load_writer if catalogue.writes(self.path) else transformer.load_translator
        return self._home.get(self.key, self.needs, lambda: load(self.path))


_handles = Recent[ModelHandle](256)


def _handle(name: str, path: Path) -> ModelHandle:
    found = ModelHandle(name, path, catalogue.changed(path))
    return _handles.get(found.key, lambda: found)


_residents = Residents(int(os.environ.get("TRANSFORMER_MOST_MODELS") or MOST_MODELS))
_resident_twins = Residents(12)  # they are small, and many


def leave_gpu() -> None:
    """Lets every model in memory compute on the CPU, since the GPU has no memory left."""
    for home in (_residents, _resident_twins):
        home.leave_gpu()


_loading = Loading(lambda: _handle(*next(iter(catalogue.on_disk().items()))).load_first())


def loading() -> Loading:
    """PyTorch and the model that opens first; whatever imports PyTorch waits for them first."""
    return _loading


def find(name: str) -> Source:
    """What a name in the list of models stands for, looked for once per run of a page.

    KeyError if there is nothing of that name; a path is no name.
    """
    return imported.find(name) if name.startswith(FILE) else handle(name)


def handle(name: str) -> ModelHandle:
    """The model of that name; further as `find`."""
    return once((handle, name), lambda: _handle(name, catalogue.directory(name)))


def known(name: str | None) -> Source | None:
    """What the name in an address stands for, None for the model that opens first; None if there is none."""
    with suppress(KeyError):
        return find(DEFAULT if name is None else name)
    return None


def exists(name: str) -> bool:
    """Whether there is a model of that name."""
    found = known(name)
    return found is not None and found.has_model
