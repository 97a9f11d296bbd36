"""Opens a model from a directory, or from a name on the Hub by way of the cache."""

from __future__ import annotations

import re
from pathlib import Path

from transformer.families.registry import is_model, load
from transformer.hub.cache import hub_title, in_words_of, verify
from transformer.hub.settings import HubError
from transformer.storage.directory import Checkpoint
from transformer.storage.files import CheckpointError

_FOLDERS = frozenset({"models", "runs", "assets", ".", ".."})
"""Folders of this project and reserved names, which no one on the Hub is called."""
_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_PASTED = re.compile(
    r"\s*(?:(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/)?([\w.-]+/[\w.-]+?)"
    r"/?(?:/(?:tree|blob|resolve|discussions|commits)/.*)?(?:[?#].*)?\s*\Z",
    re.ASCII,
)
"""A name as it is copied from the page of a model, with what stands around it."""


def open_model(
    path: str | Path,  # a directory, an archive that a family reads, or ``owner/model`` on the Hub
    revision: str | None = None,  # branch, tag or commit on the Hub; None for the newest state
) -> tuple[str, Checkpoint]:
    """The name for captions and the content of a model; CheckpointError if it cannot be fetched or opened."""
    directory = _directory(_named(path), revision)
    name = hub_title(directory)
    if name is None:
        return directory.resolve().name, _read(directory)
    with in_words_of(name, directory):
        verify(directory)
        return name, _read(directory)


def _named(path: str | Path) -> str | Path:
    """The name of a model in a pasted address of its page; any other path as it is."""
    if not isinstance(path, str) or Path(path).exists():
        return path
    pasted = _PASTED.match(path)
    return pasted[1] if pasted else path


def _directory(path: str | Path, revision: str | None) -> Path:
    if isinstance(path, str) and not Path(path).exists() and _NAME.fullmatch(path):
        if Path(path).parts[0] in _FOLDERS:
            raise CheckpointError(f"There is no model directory {path}.")
        return _found(path, revision)
    if revision is not None:
        raise CheckpointError(f"{path} is not a name on the Hub, so it has no revision {revision!r:.80}.")
    return Path(path)


def _found(name: str, revision: str | None) -> Path:
    from transformer.hub.fetch import find

    try:
        return find(name, revision).directory
    except HubError as error:
        folder = Path(name).parent
        if folder.is_dir():
            message = f"There is no model directory {name}. As a name on the Hub: {error}"
            raise CheckpointError(message) from error
        raise


def _read(directory: Path) -> Checkpoint:
    if directory.exists() and not is_model(directory):
        what = "folder" if directory.is_dir() else "file"
        raise CheckpointError(f"The {what} {directory} holds no model that this package knows.")
    return load(directory)
