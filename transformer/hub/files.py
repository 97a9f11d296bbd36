"""A model's files: those needed to open it, and those in huggingface_hub's cache. No network, no
PyTorch.

A branch is recorded (`refs/main`) only after all its files have arrived, so an interrupted download
never looks like a complete model.
"""

import hashlib
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from transformer.config import ModelConfig
from transformer.families.registry import GGUF_SUFFIX, KNOWN, config_in, needed_files
from transformer.hub.settings import Hub, HubError
from transformer.storage.description import CONFIG_FILE
from transformer.storage.files import PYTORCH, SAFETENSORS, CheckpointError

_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""A git object id, or a SHA-256."""
_SNAPSHOT = re.compile(r".*/models--([\w.-]+?)--([\w.-]+)/snapshots/([0-9a-f]{40})", re.ASCII)


@dataclass(frozen=True)
class RemoteFile:
    """A file as the Hub describes it."""

    name: str  # file name without a folder
    size: int  # size in bytes
    hash: str  # SHA-256 of the content (64 digits), or its git object id (40 digits)


@dataclass(frozen=True)
class Offer:
    """A model on the Hub that can be downloaded."""

    name: str  # name that was asked for
    present_name: str  # present name of the model; differs from ``name`` if the model was renamed
    revision: str  # branch, tag or commit that was asked for
    commit: str  # commit that the revision points to
    files: tuple[RemoteFile, ...]  # files to download
    config: ModelConfig  # config of the model

    @property
    def nbytes(self) -> int:
        """Total size of the files in bytes."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True)
class Snapshot:
    """A complete model in the cache."""

    name: str  # name on the Hub
    commit: str  # commit hash of the files
    directory: Path  # directory that holds the files
    # why the Hub was not asked for a newer state, in a sentence; empty if it was, or did not need
    # to be
    note: str = field(default="", compare=False)

    @property
    def title(self) -> str:
        """Name and commit, as captions show them."""
        return f"{self.name}@{self.commit[:8]}"


def hub_title(directory: Path) -> str | None:
    """Name and commit of a directory in huggingface_hub's cache; None for any other directory."""
    match = _SNAPSHOT.fullmatch(directory.absolute().as_posix())
    if match is None:
        return None
    return f"{match[1]}/{match[2]}@{match[3][:8]}"


def needed(names: Collection[str], model: str) -> list[str]:
    """The files needed to open a model, weights last; HubError if the package cannot open it."""
    beside, weights = needed_files(names)
    missing = sorted({*beside, *weights} - set(names))
    if missing or not weights:
        lacking = " and no ".join(missing[:3]) or f"{SAFETENSORS} or {PYTORCH}"
        opens = f"this package opens only {KNOWN} models and its own"
        if any(name.endswith(GGUF_SUFFIX) for name in names):
            opens = "download one of its GGUF files, and open it by its path"
        raise HubError(f"{model} has no {lacking}; {opens}.")
    return [*beside, *weights]


def cached(name: str, revision: str | None = None, hub: Hub | None = None) -> Snapshot | None:
    """A complete model in the cache, or None, without network; HubError if the name is not
    allowed."""
    from huggingface_hub import try_to_load_from_cache  # here, since it loads the client

    hub = hub or Hub.from_environment()
    revision = hub.revision(name, revision)
    try:
        config = try_to_load_from_cache(name, CONFIG_FILE, cache_dir=hub.cache, revision=revision)
        if not isinstance(config, str):
            return None
        directory = Path(config).parent
        needed([path.name for path in directory.iterdir() if path.is_file()], name)
        config_in(directory)
    except (ValueError, OSError):  # damaged, or of another kind
        return None
    return Snapshot(name, directory.name, directory)


def cached_models(hub: Hub | None = None) -> list[Snapshot]:
    """All models in the cache that this package can open and that are allowed here, sorted by
    name."""
    hub = hub or Hub.from_environment()
    snapshots = list[Snapshot]()
    for folder in hub.cache.glob("models--*--*"):
        with suppress(HubError):
            if snapshot := cached(
                folder.name.removeprefix("models--").replace("--", "/"), None, hub
            ):
                snapshots.append(snapshot)
    return sorted(snapshots, key=lambda snapshot: snapshot.name.lower())


_checked: dict[str, tuple[int, int]] = {}
"""Size and modification time of the files that this process has compared with their hashes."""


def check(path: Path, expected: str, folder: Path, name: str) -> None:
    """Compares a file with its hash, once per process; removes it and raises HubError if they
    differ.

    HubError too if the file lies outside the model's folder.
    """
    real = path.resolve()
    what = f"{name} of {folder.name.removeprefix('models--').replace('--', '/')}"
    if not real.is_relative_to(folder):
        raise HubError(f"{what} lies outside the cache of its model, so it is not opened.")
    key = f"{real} {expected}"
    stamp = (real.stat().st_size, real.stat().st_mtime_ns)
    if _checked.get(key) != stamp:
        start = f"blob {stamp[0]}\0".encode()  # of what git hashes
        digest = (
            hashlib.sha256() if len(expected) == 64 else hashlib.sha1(start, usedforsecurity=False)
        )
        with real.open("rb") as file:
            actual = hashlib.file_digest(file, lambda: digest).hexdigest()
        if actual != expected:
            path.unlink()
            real.unlink(missing_ok=True)
            damaged = "the file was damaged and is now removed; download the model again"
            raise HubError(f"{what} does not match its hash: {damaged}.")
    _checked[key] = stamp


def verify(directory: Path) -> None:
    """HubError if a snapshot's file differs from its hash; it is removed, so that it is fetched
    again."""
    folder = directory.resolve().parents[1]
    for name in needed([path.name for path in directory.iterdir()], folder.name):
        path = directory / name
        if path.is_symlink() and _HASH.fullmatch(digest := path.resolve().name):
            check(path, digest, folder, name)


@contextmanager
def in_words_of(title: str, directory: Path) -> Iterator[None]:
    """Makes errors about a model's directory name the model instead of a path in the cache."""
    try:
        yield
    except CheckpointError as error:
        raise HubError(str(error).replace(str(directory), title)) from error


def size(nbytes: float) -> str:
    """A number of bytes as readable text, in powers of ten as on the Hub."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= factor:
            return f"{nbytes / factor:.1f} {unit}"
    return f"{nbytes:.0f} bytes"
