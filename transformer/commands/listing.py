"""`python -m transformer models`: which models there are, and what they need."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from transformer.commands.models import Json
from transformer.families.registry import config_in, family_of, is_gguf, is_model
from transformer.hub.files import cached_models, size
from transformer.storage.description import parameter_count
from transformer.storage.memory import free_bytes, needed_bytes

_WEIGHTS = (".safetensors", ".bin", ".gguf")
_DEEPEST = 2
"""Folders within a folder that are looked through."""


def models(
    folders: Annotated[tuple[Path, ...], "FOLDER", "where to look; without one, models/"] = (),
    *,
    json_lines: Annotated[bool, "print lines of JSON"] = False,
) -> int:
    """List the models of folders and of the Hub's cache, with the memory that they need."""
    paths = [(str(path), path) for folder in folders or (Path("models"),) for path in _in(folder)]
    paths += [(snapshot.title, snapshot.directory) for snapshot in cached_models()]
    for name, path in paths:
        values = _described(name, path)
        print(json.dumps(values, ensure_ascii=False) if json_lines else _line(values), flush=True)
    free = free_bytes()
    if free is not None and not json_lines:
        print(f"{size(free)} of memory are free.")
    return 0


def _in(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Every model in a folder: directories, and files that are models by themselves."""
    if is_model(folder):
        yield folder
    elif folder.is_dir() and depth <= _DEEPEST:
        for path in sorted(folder.iterdir()):
            yield from _in(path, depth + 1)


def _described(name: str, path: Path) -> Json:
    """What is known of a model without its weights, or why it cannot be opened."""
    try:
        config = config_in(path)
    except (ValueError, OSError) as error:
        return {"model": name, "error": str(error)}
    files = [path] if path.is_file() else sorted(path.iterdir())
    return {
        "model": name,
        "kind": _kind(path),
        "architecture": type(config).__name__.removesuffix("Config"),
        "parameters": parameter_count(config),
        "disk": sum(file.stat().st_size for file in files if file.suffix in _WEIGHTS),
        "memory": needed_bytes(config),
    }


def _kind(path: Path) -> str:
    """What people call models of this format."""
    if is_gguf(path):
        return "GGUF"
    family = family_of(path)
    return "own" if family is None else family.name


def _line(values: Json) -> str:
    if "error" in values:
        return f"{values['model']}: {values['error']}"
    return (
        f"{values['model']}: {values['architecture']} ({values['kind']}), "
        f"{values['parameters'] / 1e6:,.1f} M parameters, {size(values['disk'])} on the disk, "
        f"{size(values['memory'])} of memory"
    )
