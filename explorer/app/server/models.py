"""What visitors can choose: models, whose files are read and which are loaded once.

Runs from their files.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import transformer
from explorer.app.address import session
from explorer.app.address.encodings import ENCODINGS
from explorer.app.address.kinds import LINES, MOST_WRITTEN, Moves
from explorer.app.address.parameters import parse
from explorer.app.address.state import State
from explorer.app.server import examples, hosted, hub_models, memory
from explorer.app.server.loading import Loading
from explorer.app.server.run_key import RunKey
from explorer.app.server.source import FILE, NEEDS_MODEL, NOBODY, Progress, Source
from explorer.app.server.stores import Fact, Residents
from explorer.figures.base.labels import display
from explorer.lenses.words.languages import languages_in_words
from transformer import devices
from transformer.config import (
    SCORE_RULES,
    AttentionKind,
    Head,
    ModelConfig,
)
from transformer.exports.array_files import is_trace, load_arrays
from transformer.exports.array_run import YOURS
from transformer.exports.record import TraceFileError
from transformer.families.registry import GGUF_SUFFIX, config_in, described, is_gguf, is_model
from transformer.hub.files import hub_title, size
from transformer.hub.machine import Keeper, KeptModel, kept_models
from transformer.hub.settings import is_hosted
from transformer.run import Holding, Translation
from transformer.storage.description import TOKENIZER_FILE, Description
from transformer.storage.files import PYTORCH, SAFETENSORS
from transformer.storage.memory import needed_bytes
from transformer.text.words import TYPED_MASK

ROOT = Path(__file__).resolve().parents[3]
BUNDLED = ROOT / "assets" / "models"
DEFAULT = "en-pt"
"""Opens first: of the bundled models the one with most acceptable translations on the blind
list."""
TWINS = "positions"
"""Folder of the models that differ only in their positional encoding."""
RECURRENT = "recurrent"
"""Folder of the recurrent models, which differ only in the score of their attention."""
LANGUAGE = "language"
"""Folder of the language models."""
ENCODER = "encoder"
"""Folder of the encoders alone."""
FOLDERS = ("", LANGUAGE, ENCODER, TWINS, RECURRENT)
"""Where models lie, within the bundled ones and within those trained here; part of their names."""
WEIGHTS = frozenset({".safetensors", ".bin", ".gguf", ".pt", ".pth"})
"""How names of files end that hold weights, ours or those of others."""
KINDS = tuple(str(kind) for kind in AttentionKind)
_TWINS = (
    *(f"{TWINS}/{name}" for name in ENCODINGS),
    *(f"{RECURRENT}/{rule}" for rule in SCORE_RULES),
)
_ORDER = {name: i for i, name in enumerate((DEFAULT, *_TWINS))}
_FOLDER_NAMES = {TWINS: "Positional twin", RECURRENT: "Recurrent twin"}
_TITLES = {"language/lm-en": "English language model", "encoder/masked-en": "English encoder"}
"""Titles of bundled models whose names are no languages."""
STARTING = "PyTorch and the model are still loading, because the server has just started."
LARGE = 100_000_000
"""From this many bytes on, the list of models says how much memory a model needs."""
LOOKED_FOR = 5
"""Seconds for which what other programs keep on this machine is known."""
MOST_FILES, LONGEST = 4, 255
"""Most runs that a visitor opened from files, and most letters of a file's name, as file systems
allow."""
LARGEST = 128 * 2**20
TOGETHER = 256 * 2**20
"""Most bytes of traces that one visitor may keep open, and all of them together."""
MOST_MODELS = 4
"""Most models in memory, without the twins.

`TRANSFORMER_MOST_MODELS` in the environment changes it.
"""


@dataclass(frozen=True)
class ModelHandle(Source):
    """A model on this machine as it was at a time.

    What its files say is read once, without PyTorch.
    """

    name: str  # as in the list of models
    path: Path  # its directory
    changed: int  # when the directory or a file in it was last changed, in nanoseconds

    has_model = True

    @Fact
    def opens(self) -> bool:
        """Whether its files are those of a model."""
        return is_model(self.path)

    @Fact
    def problem(self) -> str:
        """Why it cannot be opened, as far as its config tells, in a sentence; empty if it can."""
        try:
            config_in(self.path)
        except (ValueError, OSError) as error:
            return str(error).replace(str(self.path), self.name)
        return ""

    @Fact
    def needs(self) -> int:
        """Bytes of memory that the loaded model takes; 0 if it cannot be loaded."""
        with suppress(ValueError, OSError):
            return needed_bytes(config_in(self.path))
        return 0

    @Fact
    def nbytes(self) -> int:
        """Bytes of its weights on the disk, in one file or in shards; 0 if they are gone."""
        if is_gguf(self.path):
            with suppress(OSError):
                return self.path.stat().st_size
        for stem in (SAFETENSORS, PYTORCH):
            name, suffix = stem.split(".")
            with suppress(OSError):
                if sizes := [path.stat().st_size for path in self.path.glob(f"{name}*.{suffix}")]:
                    return sum(sizes)
        return 0

    @Fact
    def description(self) -> Description | None:
        """Description by the files; None if only the loaded model knows."""
        return described(self.path)

    @Fact
    def vocabulary(self) -> str | None:
        """A digest of its vocabulary, by which models with the same one are known; None where
        only the loaded model knows how its files make one."""
        if self.description is None:
            return None
        with suppress(OSError):
            return hashlib.sha256((self.path / TOKENIZER_FILE).read_bytes()).hexdigest()
        return None

    def reads_alike(self, other: ModelHandle) -> bool:
        """Whether the ids of another model are known to mean the same tokens."""
        return self.vocabulary is not None and self.vocabulary == other.vocabulary

    @Fact
    def config(self) -> ModelConfig:
        return (self.description or self.load()).config

    @Fact
    def heads(self) -> dict[str, Any]:
        return (self.description or self.load()).heads or {}

    @Fact
    def default_heads(self) -> dict[str, Head]:
        chosen = self.heads.get("default")
        if chosen is None:
            model = self.load()
            language = next(iter(self.pieces), None)
            from explorer.lenses.heads.statistics import (
                first_heads,
            )  # PyTorch is there, as the model is

            texts = [self.addressed(text, language) for text in examples.offered(self).values()]
            chosen = first_heads(model, texts)
        return {
            kind: tuple(chosen.get(kind, (layers - 1, 0)))
            for kind, (layers, _) in self.sizes.items()
        }

    @property
    def stated(self) -> ModelConfig | None:
        try:
            return self.config if self.description or self.resident else self.beside(config_in)
        except (ValueError, OSError):
            return None

    @Fact
    def languages(self) -> str:
        """Its languages, such as "English → German"; empty if the card does not name two."""
        return languages_in_words(self.header.language)

    @Fact
    def keeper(self) -> Keeper | None:
        """The other program that keeps it on this machine; None for a model of this app."""
        folder, _, rest = self.name.partition("/")
        if ":" not in rest and "/" not in rest:  # as no name in its list
            return None
        return next((keeper for keeper in Keeper if keeper.folder == folder), None)

    @property
    def title(self) -> str:
        """What people call it: its languages, what it is a twin of, or its name."""
        if self.keeper is not None:
            rest = self.name.partition("/")[2]
            return rest if self.keeper is Keeper.OLLAMA else rest.rpartition("/")[2]
        folder, _, last = self.name.rpartition("/")
        if self.languages and self.name == "-".join(self.header.language):
            return self.languages
        if folder in _FOLDER_NAMES:
            return f"{_FOLDER_NAMES[folder]}: {last}"
        return _TITLES.get(
            self.name, self.name.removeprefix(f"{LANGUAGE}/").removeprefix(f"{ENCODER}/")
        )

    @Fact
    def label(self) -> str:
        """Its label in the list; a model of somebody else shows last whose it is, as the list is
        narrow."""
        owner = self.keeper or ""
        model = self.title
        if hub_title(self.path):
            owner, _, model = self.name.partition("/")
        needs = size(self.needs) if self.needs >= LARGE else ""
        return " · ".join(filter(None, (model, needs, owner)))

    @property
    def resident(self) -> bool:
        return self in self._home.alive

    @property
    def runs(self) -> str:
        """Where it computes, in one sentence."""
        if (model := self._home.alive.get(self)) is not None:
            return f"{self.name} runs on the {'CPU' if model.device.type == 'cpu' else 'GPU'}."
        try:
            stays = devices.stays(self.needs // 4)
        except ValueError as error:  # the environment names no device
            return str(error)
        return (
            f"{self.name} runs on the CPU."
            if stays
            else f"{self.name} runs on a GPU, if there is one."
        )

    @Fact
    def _home(self) -> Residents:
        twin = self.name.startswith((f"{TWINS}/", f"{RECURRENT}/"))
        return _resident_twins if twin else _residents

    @property
    def lacks_memory(self) -> str:
        """That more memory is needed than is free, in one sentence; empty if it fits or is loaded
        already."""
        free = memory.available()
        if self.resident or self.needs <= free:
            return ""
        return f"It needs {size(self.needs)} of memory, and {size(free)} is free."

    @property
    def waits(self) -> str:
        """Why nobody sees anything yet if it is not in memory, in a sentence."""
        if not loading.done:
            return STARTING
        free = size(memory.available())
        return f"Loading {self.name}: it needs {size(self.needs)} of memory, {free} is free"

    def load(self, progress: Progress = NOBODY, first: bool = False) -> transformer.Translator:
        if not (first or loading.done):  # the one who loads before all others waits for nothing
            progress(0, self.waits)
            loading.wait()
        return self._home.get(self, self._opened, lambda: progress(0, self.waits))

    def _opened(self) -> transformer.Translator:
        """The model, read from its files; that of another program gets its name in the list, since
        its file may be called by a hash."""
        model = transformer.load_translator(self.path, task=None)
        if self.keeper is not None:
            model.name = self.name
        return model


@dataclass(frozen=True)
class OpenFile(Source):
    """An open file. The visit holds its run, not what is kept of it: a closed file goes from
    memory."""

    name: str  # name in the list of models; contains a digest of the file

    path = None
    has_model = False

    @property
    def translation(self) -> Translation:
        """The run; KeyError if the file was closed."""
        run: Translation = session.visit().files[self.name]
        return run

    @property
    def config(self) -> ModelConfig:
        return self.translation.config

    def load(self, progress: Progress = NOBODY) -> transformer.Translator:
        raise ValueError(NEEDS_MODEL)

    @property
    @abstractmethod
    def selection(self) -> Moves:
        """Values of the state that show this run."""

    @abstractmethod
    def run_of(self, run_key: RunKey) -> Translation:
        """The run; ValueError if something else is asked for."""


@dataclass(frozen=True)
class ArraysFile(OpenFile):
    """An open file of weights of the visitor's own, without a text that could be typed."""

    has_vectors = False

    @property
    def text(self) -> str:
        """What its tokens spell."""
        run = self.translation
        return run.source_text or run.text

    @property
    def default_heads(self) -> dict[str, Head]:
        return {kind: (layers - 1, 0) for kind, (layers, _) in self.sizes.items()}

    @property
    def selection(self) -> Moves:
        return {"text": None, "decode": "greedy", "target": None}

    def run_of(self, run_key: RunKey) -> Translation:
        """The run, which is that of every request; ValueError if a change is asked for."""
        if run_key.changes:
            raise ValueError(
                "Weights in a file stay as they are: choose a model on the left for changes."
            )
        return self.translation


@dataclass(frozen=True)
class Imported(OpenFile):
    """An open file of a run with its trace."""

    @property
    def default_heads(self) -> dict[str, Head]:
        model = known(self.translation.model)
        chosen = model.default_heads if model is not None and model.has_model else {}
        last = {kind: (layers - 1, heads - 1) for kind, (layers, heads) in self.sizes.items()}
        places = {kind: chosen.get(kind, (end[0], 0)) for kind, end in last.items()}
        return {
            kind: (min(at[0], last[kind][0]), min(at[1], last[kind][1]))
            for kind, at in places.items()
        }

    @property
    def selection(self) -> Moves:
        """Values of the state that show this run."""
        run = self.translation
        if not run.config.writes:
            return {"text": run.source_text, "decode": "greedy", "target": None}
        forced = run.method == "forced"
        decode = "greedy" if forced else parse({"decode": [run.method]})[0].decode
        if self.continues:
            written = len(run.target_tokens) - run.n_given
            text = LINES.read((run.text if forced else run.prompt) or "")
            write = 0 if forced else min(written, MOST_WRITTEN)
            return {"text": text, "decode": decode, "write": write}
        target = run.text if forced else None
        return {"text": run.source_text, "decode": decode, "target": target}

    def run_of(self, run_key: RunKey) -> Translation:
        """The run, whose masks may be spelled in either way; ValueError if something else is asked
        for, or changes: they belong to the file."""
        state = State(**self.selection)
        held = RunKey.of(state, self, state.text or "")
        text = run_key.text
        for position in self.translation.fills:
            text = text.replace(TYPED_MASK, self.translation.source_tokens[position])
        if replace(held, drawing=run_key.drawing) != replace(run_key, text=text):
            raise ValueError(
                "An imported file holds one run only: choose a model on the left for anything else."
            )
        return self.translation


_OPENED: Mapping[Holding, type[Imported | ArraysFile]] = {"trace": Imported, "maps": ArraysFile}
"""What an open file is, by what its run holds."""
_open = WeakValueDictionary[
    int, Translation
]()  # by `id`: the runs of all visits, as long as one holds them


def opened(name: str) -> OpenFile:
    """The open file of a name; KeyError if it was closed."""
    return _OPENED[session.visit().files[name].holds](name)


def open_file(file_name: str, content: bytes) -> OpenFile:
    """Opens a file for this visit; if too many are open, the oldest are closed.

    ValueError if the file is damaged, foreign or too large; the message says so in one sentence.
    """
    digest = hashlib.sha256(content).hexdigest()[:6]
    title = "".join(map(display, re.sub(r"[\s<>&]+", " ", file_name[-LONGEST:]))).strip()
    run: Translation
    if is_trace(content):
        run = transformer.load_trace(io.BytesIO(content))
        hosted.check(run.source_text, run.text)
    else:
        arrays = load_arrays(content)
        run = arrays
        if arrays.model == YOURS:
            run = replace(arrays, model=title or YOURS)
    name = f"{FILE}{title or 'file'} ({digest})"
    if run.nbytes > LARGEST:
        raise TraceFileError(
            f"The file takes more than {LARGEST // 2**20} MiB of memory, the limit for one visit."
        )
    files = session.visit().files
    files.pop(name, None)
    if sum(open_run.nbytes for open_run in _open.values()) + run.nbytes > TOGETHER:
        raise TraceFileError(
            "The files that all visitors have open fill this server: come back later."
        )
    _open[id(run)] = files[name] = run
    while len(files) > MOST_FILES or sum(file.nbytes for file in files.values()) > LARGEST:
        files.pop(next(iter(files)))
    return opened(name)


# --- the models in memory ------------------------------------------------------------------------

_residents = Residents(int(os.environ.get("TRANSFORMER_MOST_MODELS") or MOST_MODELS))
_resident_twins = Residents(12)  # they are small, and many
loading = Loading(lambda: next(iter(available().values())).load(first=True))
"""PyTorch and the model that opens first; whatever imports PyTorch waits for them first."""


def leave_gpu() -> None:
    """Lets every model in memory compute on the CPU, since the GPU has no memory left."""
    for home in (_residents, _resident_twins):
        home.leave_gpu()


# --- which models there are ----------------------------------------------------------------------


_handle = lru_cache(4_096)(ModelHandle)


def own_models() -> Path:
    return Path(os.environ.get("TRANSFORMER_MODELS") or ROOT / "models")


def changed(path: Path) -> int:
    """When a directory or a file in it was last changed, in nanoseconds; 0 if it cannot be read."""
    with suppress(OSError):
        if path.is_file():
            return path.stat().st_mtime_ns
    with suppress(OSError), os.scandir(path) as files:
        paths = (path, *(file for file in files if os.path.exists(file)))
        return max(os.stat(path).st_mtime_ns for path in paths)
    return 0


def available() -> dict[str, ModelHandle]:
    """The models of this machine by name, the one that opens first at the front: bundled ones,
    those trained or put here, cached ones of the Hub, those of other programs."""
    models = dict[str, ModelHandle]()
    for handle in _on_disk():
        if handle.opens:
            models.setdefault(handle.name, handle)
    for name, path in hub_models.cached().items():
        models.setdefault(name, _handle(name, path, changed(path)))
    for handle in _of_other_programs():
        if not handle.problem:
            models.setdefault(handle.name, handle)
    return models


def grouped(models: Mapping[str, ModelHandle]) -> list[str]:
    """The names in the order of a list: translators, then language models, then encoders, then
    twins."""

    def group(name: str) -> int:
        if models[name].continues:
            return 1
        if not models[name].writes:
            return 2
        return 3 if name.startswith((f"{TWINS}/", f"{RECURRENT}/")) else 0

    return sorted(models, key=group)


def _of_other_programs() -> list[ModelHandle]:
    """The models that other programs keep on this machine; none where anybody may come."""
    if is_hosted():
        return []
    return [
        _handle(model.name, model.path, changed(model.path))
        for model in looked_for(int(time.monotonic() / LOOKED_FOR))
        if model.path.is_file()
    ]


@lru_cache(1)
def looked_for(_turn: int) -> tuple[KeptModel, ...]:
    """What other programs keep, looked for now and then."""
    return kept_models()


def unlisted() -> dict[str, str]:
    """Folders among the models of this machine that the list leaves out, by name: why, in a
    sentence."""
    reasons = dict[str, str]()
    for handle in _on_disk():
        name = handle.name
        if handle.opens or name in FOLDERS:
            continue
        kinds = _weights_in(handle.path)
        if GGUF_SUFFIX in kinds:
            reasons[name] = f"{name} is a folder; the GGUF file in it is to lie beside it."
        elif kinds:
            reasons[name] = handle.problem
    return reasons | {
        handle.name: handle.problem for handle in _of_other_programs() if handle.problem
    }


def _weights_in(path: Path) -> set[str]:
    """How the names of the files of weights in a folder end."""
    with suppress(OSError):
        return {file.suffix for file in path.iterdir()} & WEIGHTS
    return set()


def _on_disk() -> Iterator[ModelHandle]:
    """All folders, and files that are models by themselves, where bundled models lie and those
    that are trained here: twins in their usual order."""
    for folder in FOLDERS:
        paths = list[tuple[str, Path]]()
        for place in (BUNDLED / folder, own_models() / folder):
            for path in sorted(place.iterdir()) if place.is_dir() else ():
                # a name that an address can carry and no opened file has
                usable = path.name.isprintable() and not path.name.startswith((FILE, "."))
                if usable and (path.is_dir() or is_gguf(path)):
                    paths.append((f"{folder}/{path.name}".lstrip("/"), path))
        paths.sort(key=lambda pair: _ORDER.get(pair[0], len(_ORDER)))
        yield from (_handle(name, path, changed(path)) for name, path in paths)


def twins(folder: str = TWINS) -> dict[str, ModelHandle]:
    """The twins of a folder by name, such as `positions/rotary`: in the usual order, then the
    others. A model that reads no source is nobody's twin."""
    return {
        name: source
        for name, source in available().items()
        if name.startswith(f"{folder}/") and source.writes and not source.continues
    }


def find(name: str) -> Source:
    """What a name in the list of models stands for; KeyError if there is nothing of that name."""
    if name.startswith(FILE):
        return opened(name)
    return available()[name]


def known(name: str | None) -> Source | None:
    """What the name in an address stands for, None for the model that opens first.

    None if there is none.
    """
    with suppress(KeyError):
        return find(DEFAULT if name is None else name)
    return None
