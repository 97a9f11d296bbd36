"""`python -m transformer models`: which models there are, and what they need."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from transformer.commands.models import BUNDLED, Json
from transformer.families.registry import format_of, is_model
from transformer.hub.files import cached_models, size
from transformer.hub.machine import kept_models
from transformer.storage.description import parameter_count
from transformer.storage.memory import free_bytes, needed_bytes

_WEIGHTS = (".safetensors", ".bin", ".gguf")
_DEEPEST = 2
"""Folders within a folder that are looked through."""
Group = tuple[str, list[tuple[str, Path]]]
"""Where models were found; each has a name that a command takes, and its path."""


def models(
    folders: Annotated[
        tuple[Path, ...],
        "FOLDER",
        "where to look; without one: what is bundled, models/, Ollama, LM Studio, the Hub's cache",
    ] = (),
    *,
    json_lines: Annotated[bool, "print lines of JSON"] = False,
) -> int:
    """List the models of folders, or of this machine, with their size and the memory they need."""
    free = free_bytes()
    groups = map(_of_folder, folders) if folders else _on_this_machine()
    for title, paths in groups:
        if paths and not json_lines:
            print(f"{title}:")
        for name, path in paths:
            values = _described(name, path) | {"found": title}
            line = json.dumps(values, ensure_ascii=False) if json_lines else _line(values, free)
            print(line, flush=True)
    if free is not None and not json_lines:
        print(f"{size(free)} of memory are free.")
    return 0


def _on_this_machine() -> Iterator[Group]:
    """The models that commands and the app find by themselves."""
    yield "Bundled", [(str(path), path) for path in _in(BUNDLED)]
    yield "In models", [(str(path), path) for path in _in(Path("models"))]
    by_keeper = dict[str, list[tuple[str, Path]]]()
    for model in kept_models():
        by_keeper.setdefault(model.keeper, []).append((model.title, model.path))
    yield from by_keeper.items()
    snapshots = [(snapshot.title, snapshot.directory) for snapshot in cached_models()]
    yield "Cache of the Hub", snapshots


def _of_folder(folder: Path) -> Group:
    return f"In {folder}", [(str(path), path) for path in _in(folder)]


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
        form = format_of(path)
        config = form.config(path)
    except (ValueError, OSError) as error:
        return {"model": name, "path": str(path), "error": str(error)}
    files = [path]
    if path.is_dir():
        files = [file for file in sorted(path.iterdir()) if file.suffix in _WEIGHTS]
    return {
        "model": name,
        "path": str(path),
        "kind": form.name,
        "architecture": form.architecture(path),
        "parameters": parameter_count(config),
        "disk": sum(file.stat().st_size for file in files),
        "memory": needed_bytes(config),
    }


def _line(values: Json, free: int | None) -> str:
    """A model in a line; its path, too, where the name is none."""
    place = "" if values["model"] == values["path"] else f" ({values['path']})"
    if "error" in values:
        return f"  {values['model']}{place}: {values['error']}"
    much = "" if free is None or values["memory"] <= free else ", more than is free"
    return (
        f"  {values['model']}{place}: {values['architecture']} ({values['kind']}), "
        f"{values['parameters'] / 1e6:,.1f} M parameters, {size(values['disk'])} on the disk, "
        f"{size(values['memory'])} of memory{much}"
    )
