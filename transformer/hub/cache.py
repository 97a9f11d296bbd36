"""The models that huggingface_hub keeps on this machine, found by name and checked. No network, no PyTorch.

A branch is recorded (`refs/main`) only after all its files have arrived, so an interrupted download never
looks like a complete model.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from transformer.hub.files import HASH, check_config, matches, needed
from transformer.hub.settings import COMMIT, Hub, HubError
from transformer.storage.files import CheckpointError

_FOLDER = re.compile(r"models--([\w.-]+?)--([\w.-]+)", re.ASCII)


@dataclass(frozen=True)
class Snapshot:
    """A complete model in the cache."""

    name: str  # name on the Hub
    commit: str  # commit hash of the files
    directory: Path  # directory that holds the files

    @property
    def title(self) -> str:
        """Name and commit, as captions show them."""
        return f"{self.name}@{self.commit[:8]}"


def hub_title(directory: Path) -> str | None:
    """Name and commit of a directory in huggingface_hub's cache; None for any other directory."""
    parts = directory.absolute().parts[-3:]
    if len(parts) < 3 or parts[1] != "snapshots" or not COMMIT.fullmatch(parts[2]):
        return None
    found = _FOLDER.fullmatch(parts[0])
    return None if found is None else f"{found[1]}/{found[2]}@{parts[2][:8]}"


_checked: dict[str, tuple[int, int]] = {}
"""Size and modification time of the files that this process has compared with their hashes."""
_lock = threading.Lock()


def check(path: Path, expected: str, folder: Path, name: str) -> None:
    """Compares a file with its hash, once per process; removes it and raises HubError if they differ.

    HubError too if the file lies outside the model's folder.
    """
    real, what = path.resolve(), f"{name} of {folder.name.removeprefix('models--').replace('--', '/')}"
    if not real.is_relative_to(folder):
        raise HubError(f"{what} lies outside the cache of its model, so it is not opened.")
    stamp = (real.stat().st_size, real.stat().st_mtime_ns)
    with _lock:
        if _checked.get(f"{real} {expected}") == stamp:
            return
    if not matches(real, expected):
        path.unlink()
        real.unlink(missing_ok=True)
        raise HubError(
            f"{what} does not match its hash: the file was damaged and is now removed; download the model "
            "again."
        )
    with _lock:
        _checked[f"{real} {expected}"] = stamp


def cached(name: str, revision: str | None = None, hub: Hub | None = None) -> Snapshot | None:
    """A complete model in the cache, or None, without network; HubError if the name is not allowed."""
    hub = hub or Hub.from_environment()
    revision = hub.asked(name, revision)
    commit = revision if COMMIT.fullmatch(revision) else _recorded(hub.folder(name) / "refs" / revision)
    directory = hub.folder(name) / "snapshots" / commit
    if not commit or not directory.is_dir():
        return None
    try:
        needed([path.name for path in directory.iterdir() if path.is_file()], name)
        check_config(directory)
    except (CheckpointError, OSError):
        return None
    return Snapshot(name, commit, directory)


def _recorded(reference: Path) -> str:
    try:
        commit = reference.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
    return commit if COMMIT.fullmatch(commit) else ""


def cached_models(hub: Hub | None = None) -> list[Snapshot]:
    """All models in the cache that this package can open and that are allowed here, sorted by name."""
    hub = hub or Hub.from_environment()
    return sorted(_cached_models(hub), key=lambda snapshot: snapshot.name.lower())


def _cached_models(hub: Hub) -> Iterator[Snapshot]:
    for folder in hub.cache.glob("models--*--*"):
        name = folder.name.removeprefix("models--").replace("--", "/")
        try:
            snapshot = cached(name, None, hub)
        except HubError:
            continue
        if snapshot is not None:
            yield snapshot


def verify(directory: Path) -> None:
    """HubError if a snapshot's file differs from its hash; it is removed, so that it is fetched again."""
    folder = directory.resolve().parents[1]
    for name in needed([path.name for path in directory.iterdir()], folder.name):
        path = directory / name
        if path.is_symlink() and HASH.fullmatch(digest := path.resolve().name):
            check(path, digest, folder, name)


@contextmanager
def in_words_of(title: str, directory: Path) -> Iterator[None]:
    """Makes errors about a model's directory name the model instead of a path in the cache."""
    try:
        yield
    except CheckpointError as error:
        raise HubError(str(error).replace(str(directory), title)) from error
