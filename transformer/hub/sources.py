"""Opens a model from a directory, or from a name on the Hub by way of the cache."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from transformer.families.registry import is_model, load
from transformer.hub.files import Snapshot, hub_title, in_words_of, verify
from transformer.hub.settings import HubError, pasted_name
from transformer.storage.directory import Checkpoint
from transformer.storage.files import CheckpointError

_FOLDERS = frozenset({"models", "runs", "assets", ".", ".."})
"""Folders of this project and reserved names, which no one on the Hub is called."""


def open_model(
    path: str | Path,  # a directory, an archive that a family reads, or ``owner/model`` on the Hub
    revision: str | None = None,  # branch, tag or commit on the Hub; None for the newest state
) -> tuple[str, Checkpoint]:
    """The name for captions and the content of a model; CheckpointError if it cannot be fetched or
    opened."""
    pasted = None
    if not isinstance(path, Path) and not Path(path).exists():
        pasted = pasted_name(path)
    directory = Path(path if pasted is None else pasted)
    note = ""
    if pasted is not None and not Path(pasted).exists():
        snapshot = _fetched(pasted, revision)
        directory = snapshot.directory
        note = snapshot.note
    elif revision is not None:
        raise CheckpointError(
            f"{path} is not a name on the Hub, so it has no revision {revision!r:.80}."
        )
    title = hub_title(directory)
    with nullcontext() if title is None else in_words_of(title, directory):
        if title is not None:
            verify(directory)
        if directory.exists() and not is_model(directory):
            what = "folder" if directory.is_dir() else "file"
            raise CheckpointError(f"The {what} {directory} holds no model that this package knows.")
        checkpoint = load(directory)
    if note:
        checkpoint = replace(checkpoint, notes=(*checkpoint.notes, note))
    return title or directory.resolve().name, checkpoint


def _fetched(name: str, revision: str | None) -> Snapshot:
    """A model on the Hub, in the cache."""
    from transformer.hub.fetch import find

    missing = f"There is no model directory {name}."
    if Path(name).parts[0] in _FOLDERS:
        raise CheckpointError(missing)
    try:
        return find(name, revision)
    except HubError as error:
        if not Path(name).parent.is_dir():
            raise
        raise CheckpointError(f"{missing} As a name on the Hub: {error}") from error
