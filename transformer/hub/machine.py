"""Models that other programs keep on this machine: Ollama, and LM Studio. Nothing is written.

What these programs wrote is a stranger's: whatever is damaged, too large, or leads out of their
folder is left out, and never an error.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path

from transformer.families.registry import GGUF_SUFFIX
from transformer.storage.gguf import MAGIC

OLLAMA_VARIABLE = "OLLAMA_MODELS"
"""The environment variable with which Ollama itself is told where its models lie."""
MOST_MANIFEST = 2**20
"""Bytes of a manifest of Ollama; a usual one has under a thousand."""
MOST_MODELS = 500
"""Models of a program; further ones are left out."""
OLLAMA_FOLDERS: tuple[str, ...] = "~/.ollama/models", "/usr/share/ollama/.ollama/models"
"""Where Ollama keeps its models: a person's own, and those of the service that its installer for
Linux sets up."""
LM_STUDIO_FOLDERS: tuple[str, ...] = "~/.lmstudio/models", "~/.cache/lm-studio/models"
"""Where LM Studio keeps its models, and where its older versions did."""
_WEIGHTS = "application/vnd.ollama.image.model"
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_USUAL_HOST, _USUAL_SPACE = "registry.ollama.ai", "library"
"""What Ollama leaves out when it names a model."""
_LATER_PART = re.compile(r"-(?!00001)\d{5}-of-\d{5}\.gguf$")
_PROJECTOR = "mmproj"
"""What names of files begin with that see pictures for a model, and are none."""


class Keeper(StrEnum):
    """The program that keeps a model."""

    OLLAMA = "Ollama"
    LM_STUDIO = "LM Studio"

    @property
    def folder(self) -> str:
        """What the names of its models begin with."""
        return self.lower().replace(" ", "")


@dataclass(frozen=True, kw_only=True)
class KeptModel:
    """A model that another program keeps on this machine, a GGUF file."""

    name: str  # stable, and that of no model on the Hub: "ollama/smollm:135m"
    title: str  # what its program calls it: "smollm:135m"
    path: Path
    nbytes: int  # of the file
    keeper: Keeper


def kept_models() -> tuple[KeptModel, ...]:
    """The models of other programs, by program and name."""
    ollama = ollama_models(*_ollama_folders())
    lm_studio = lm_studio_models(*map(_expanded, LM_STUDIO_FOLDERS))
    by_name = dict[str, KeptModel]()
    for model in (*ollama, *lm_studio):
        by_name.setdefault(model.name, model)
    return tuple(sorted(by_name.values(), key=lambda model: (model.keeper, model.name)))


def _ollama_folders() -> tuple[Path, ...]:
    stated = os.environ.get(OLLAMA_VARIABLE, "").strip()
    return tuple(map(_expanded, (stated,) if stated else OLLAMA_FOLDERS))


def _expanded(path: str) -> Path:
    return Path(os.path.expanduser(path))


def ollama_models(*folders: Path) -> Iterator[KeptModel]:
    """The models of folders with `manifests` and `blobs`."""
    for folder in folders:
        for manifest in _files(folder / "manifests", "*/*/*/*"):
            title = _ollama_title(manifest)
            blob = _blob_of(manifest, folder)
            if blob is not None and title.isprintable():
                yield KeptModel(
                    name=f"{Keeper.OLLAMA.folder}/{title}",
                    title=title,
                    path=blob,
                    nbytes=_size(blob),
                    keeper=Keeper.OLLAMA,
                )


def _ollama_title(manifest: Path) -> str:
    """What Ollama calls the model of a manifest: "smollm:135m", "person/model:tag", or with the
    host before it."""
    host, space, model, tag = manifest.parts[-4:]
    name = f"{model}:{tag}"
    if host != _USUAL_HOST:
        return f"{host}/{space}/{name}"
    return name if space == _USUAL_SPACE else f"{space}/{name}"


def _blob_of(manifest: Path, folder: Path) -> Path | None:
    """The file of a manifest's weights; None if the manifest names none that is there."""
    for layer in _layers(manifest):
        if not isinstance(layer, dict) or layer.get("mediaType") != _WEIGHTS:
            continue
        digest = layer.get("digest")
        match = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
        if match is None:
            return None
        blob = folder / "blobs" / f"sha256-{match[1]}"
        return blob if _lies_in(blob, folder) and _is_gguf(blob) else None
    return None


def _layers(manifest: Path) -> list[object]:
    """The layers of a manifest; none if it is damaged or too large."""
    with suppress(OSError, ValueError, RecursionError):
        with manifest.open("rb") as file:
            content = file.read(MOST_MANIFEST + 1)
        values = json.loads(content) if len(content) <= MOST_MANIFEST else None
        layers = values.get("layers") if isinstance(values, dict) else None
        if isinstance(layers, list):
            return layers
    return []


def lm_studio_models(*folders: Path) -> Iterator[KeptModel]:
    """The models of folders that hold `publisher/repository/file.gguf`."""
    for folder in folders:
        for path in _files(folder, f"*/*/*{GGUF_SUFFIX}"):
            title = path.relative_to(folder).as_posix().removesuffix(GGUF_SUFFIX)
            first = not _LATER_PART.search(path.name)
            writes = not path.name.startswith(_PROJECTOR)
            if first and writes and title.isprintable() and _is_gguf(path):
                yield KeptModel(
                    name=f"{Keeper.LM_STUDIO.folder}/{title}",
                    title=path.name.removesuffix(GGUF_SUFFIX),
                    path=path,
                    nbytes=_size(path),
                    keeper=Keeper.LM_STUDIO,
                )


def _files(folder: Path, pattern: str) -> Iterator[Path]:
    """Files of a folder that do not lead out of it, in the order of their names."""
    with suppress(OSError):
        paths = sorted(islice(folder.glob(pattern), MOST_MODELS))
        yield from (path for path in paths if _lies_in(path, folder))


def _lies_in(path: Path, folder: Path) -> bool:
    """Whether a path is a file inside a folder, wherever its links lead."""
    with suppress(OSError, RuntimeError, ValueError):
        return path.is_file() and path.resolve().is_relative_to(folder.resolve())
    return False


def _is_gguf(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
    return False


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0
